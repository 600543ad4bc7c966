"""``headway targets`` against a real server."""

import asyncio
import json
from pathlib import Path
from typing import Any

from gateway.core.clock import SystemClock
from gateway.store.client import StoreClient
from gateway.store.reports import TargetReports
from tests.support.heartbeat import heartbeat
from tests.support.serve import headway_command

ADVICE = {
    "samples": 90,
    "step_ms": {"a": 9.5, "b": 0.5, "c": 0.0001, "d": 0.07},
    "itl_target_ms": 40.0,
    "reached": False,
    "flags": "--max-num-seqs 64 --max-num-batched-tokens 256 --scheduling-policy priority",
    "longest_step_ms": {"now": 150.0, "then": 44.0},
    "offline_cost": 0.21,
}
DISPATCHER: dict[str, Any] = {
    "rows": 7,
    "prefilling": 1,
    "works": True,
    "admits": True,
    "caps": {"rows": 40, "ours": 40, "prompts": 1, "ttft": 0.25, "gap": 0.031},
    "engine": ADVICE,
    "late_cost": {"held": 3.5, "max_cost": 20.0, "window_s": 86400, "exhausted": True},
}
GATEWAY: dict[str, Any] = {
    "healthy": True,
    "breaker_open": False,
    "closed_s": 0.0,
    "lanes": {"interactive": {"running": 2, "waiting": 1}},
    "engine": None,
}


async def _targets(store_url: str, tmp_path: Path, *arguments: str) -> str:
    command = ["targets", *arguments, "--data-dir", str(tmp_path)]
    environment = {"HEADWAY_REDIS_URL": store_url}
    ended = await asyncio.to_thread(headway_command, command, environment)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


async def test_each_target_with_what_is_known(
    tmp_path: Path, store: StoreClient, store_url: str
) -> None:
    """A row for each, then cost and advice in words; as JSON the same for programs."""
    assert await _targets(store_url, tmp_path, "--json") == ""
    reports = TargetReports(store, SystemClock())

    async def tell() -> None:
        await reports.put("d", "dispatcher", {"up": DISPATCHER})
        await reports.put("g", "gateway", {"up": GATEWAY, "chat-only": GATEWAY})

    await tell()
    async with heartbeat(store, "g"):
        table = await _targets(store_url, tmp_path)
    for text in ("2 + 1 wait", "250 ms", "31 ms", "chat-only"):
        assert text in table
    assert "up: late work holds 3.5 of 20; used up\n" in table
    assert f"up: for at most 40 ms: {ADVICE['flags']}; then 44 ms, for 21% of what" in table
    assert "up: no flags reach the target" in table
    await tell()  # what was told is forgotten soon
    async with heartbeat(store, "g"):
        text = await _targets(store_url, tmp_path, "--json")
    lines = [json.loads(line) for line in text.splitlines()]
    assert [line["target"] for line in lines] == ["up", "chat-only"]
    assert lines[0]["advice"] == ADVICE
