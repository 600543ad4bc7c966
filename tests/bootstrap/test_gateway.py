"""The gateway's objects fit together."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from gateway.bootstrap.gateway import build_gateway
from gateway.core.clock import SystemClock
from gateway.core.settings import Settings
from gateway.policy.model import Policy
from tests.support.scripts import error
from tests.support.serve import one_target
from tests.support.upstream import ScriptedUpstream


async def test_it_serves_calls_files_and_batches(
    tmp_path: Path, store_url: str, upstream: ScriptedUpstream
) -> None:
    """One application with every route, closed without a leftover."""
    policy = Policy.model_validate(one_target(upstream.url))
    settings = Settings(data_dir=tmp_path)
    gateway = await build_gateway(settings, policy, store_url, "hw-k", SystemClock())
    transport = httpx.ASGITransport(gateway.app)
    headers = {"authorization": "Bearer hw-k"}
    async with httpx.AsyncClient(
        transport=transport, base_url="http://gateway/v1", headers=headers
    ) as client:
        body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
        assert (await client.post("/chat/completions", json=body)).status_code == 200
        for path in ("/models", "/files", "/batches", "/jobs"):
            assert (await client.get(path)).json()["object"] == "list"
            assert (await client.get(f"{path}?after=nope")).status_code == (
                200 if path == "/models" else 400
            )
        gateway.drain()
        assert (await client.get("/models")).status_code == 503
    await gateway.aclose()


async def test_all_new_work_asks_one_room(
    tmp_path: Path, store_url: str, upstream: ScriptedUpstream
) -> None:
    """What jobs took is not there for uploads; all are refused alike, near the limit."""
    policy = Policy.model_validate(one_target(upstream.url))
    settings = Settings(data_dir=tmp_path, disk_limit_bytes=2**20)
    gateway = await build_gateway(settings, policy, store_url, "hw-k", SystemClock())
    transport = httpx.ASGITransport(gateway.app)
    headers = {"authorization": "Bearer hw-k"}
    async with httpx.AsyncClient(
        transport=transport, base_url="http://gateway/v1", headers=headers
    ) as client:
        call = {"model": "m", "messages": [{"role": "user", "content": "x" * 100_000}]}
        job = {"endpoint": "/v1/chat/completions", "body": call}
        line = b'{"custom_id":"a"}'

        async def upload(content: bytes) -> httpx.Response:
            sent = {"file": ("in.jsonl", content)}
            return await client.post("/files", data={"purpose": "batch"}, files=sent)

        file_id = (await upload(line)).json()["id"]
        batch = {
            "input_file_id": file_id,
            "endpoint": "/v1/chat/completions",
            "completion_window": "24h",
        }
        statuses = [(await client.post("/jobs", json=job)).status_code for _ in range(12)]
        assert statuses == sorted(statuses)
        assert 7 <= statuses.count(202) <= 10
        big = await upload(b"x" * 200_000)
        while (await upload(line)).status_code == 200:
            pass
        small = [await client.post("/batches", json=batch), await upload(line)]
        small.append(await client.post("/responses", json={"model": "m", "input": "x"}))
        small.append(await client.post("/jobs", json={**job, "body": BODY}))
        assert {got.status_code for got in (big, *small)} == {503}
    await gateway.aclose()


BODY = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


@asynccontextmanager
async def gateway_at(
    folder: Path, store_url: str, targets: dict[str, Any]
) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a gateway of its own."""
    policy = Policy.model_validate({"targets": targets})
    gateway = await build_gateway(
        Settings(data_dir=folder), policy, store_url, "hw-k", SystemClock()
    )
    transport = httpx.ASGITransport(gateway.app)
    headers = {"authorization": "Bearer hw-k"}
    async with httpx.AsyncClient(
        transport=transport, base_url="http://gateway/v1", headers=headers
    ) as client:
        yield client
    await gateway.aclose()


async def asked(client: httpx.AsyncClient) -> tuple[int, str | None]:
    """Status and target of one call."""
    got = await client.post("/chat/completions", json=BODY)
    return got.status_code, got.headers.get("x-headway-target")


@pytest.mark.parametrize(
    ("told", "pause"), [(2, 0.4), pytest.param(5, 1.0, marks=pytest.mark.long)]
)
async def test_rty_12_cooldown_shared_by_replicas(
    tmp_path: Path,
    store_url: str,
    upstream: ScriptedUpstream,
    upstream2: ScriptedUpstream,
    told: int,
    pause: float,
) -> None:
    """RTY-12: what one gateway is told, the other one heeds."""
    upstream.enqueue(error(429, headers={"retry-after": str(told)}))
    targets = {
        name: {"base_url": up.url, "models": ["m"]}
        for name, up in (("up1", upstream), ("up2", upstream2))
    }
    async with (
        gateway_at(tmp_path / "a", store_url, targets) as a,
        gateway_at(tmp_path / "b", store_url, targets) as b,
    ):
        await asyncio.sleep(0.3)
        assert await asked(a) == (200, "up2")
        at = upstream.calls()[0].at
        await asyncio.sleep(pause)
        assert [await asked(b) for _ in range(20)] == [(200, "up2")] * 20
        assert len(upstream.calls()) == 1
        await asyncio.sleep(max(0.0, at + told + 0.2 - SystemClock().monotonic()))
        assert await asked(b) == (200, "up1")


async def test_health_and_load_are_watched(
    tmp_path: Path, store_url: str, upstream: ScriptedUpstream, upstream2: ScriptedUpstream
) -> None:
    """A target that is not well is left out and comes back; engines' figures are in the metrics."""
    upstream.pages["/health"] = (503, b"loading")
    upstream2.pages["/metrics"] = (
        200,
        b'vllm:num_requests_running{engine="0"} 7\nvllm:kv_cache_usage_perc 0.25\n',
    )
    targets = {
        "up1": {"base_url": upstream.url, "models": ["m"], "health": "/health"},
        "up2": {"base_url": upstream2.url, "models": ["m"], "kind": "vllm"},
    }
    async with gateway_at(tmp_path, store_url, targets) as client:

        async def page() -> str:
            return (await client.get("http://gateway/metrics")).text

        async with asyncio.timeout(10):
            while (await asked(client))[1] != "up2":  # noqa: ASYNC110 - a state elsewhere
                await asyncio.sleep(0.1)
            while "headway_engine_running" not in await page():  # noqa: ASYNC110 - a state elsewhere
                await asyncio.sleep(0.1)
        shown = await page()
        label = 'lane="",target="{}",model="",status=""'
        assert f"headway_target_closed{{{label.format('up1')}}} 1" in shown
        assert f"headway_target_closed{{{label.format('up2')}}} 0" in shown
        assert f"headway_engine_running{{{label.format('up2')}}} 7" in shown
        assert f"headway_engine_kv_use{{{label.format('up2')}}} 0.25" in shown
        upstream.pages["/health"] = (200, b"ok")
        async with asyncio.timeout(10):
            while (await asked(client))[1] != "up1":  # noqa: ASYNC110 - a state elsewhere
                await asyncio.sleep(0.1)
