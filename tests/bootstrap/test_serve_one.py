"""Several gateway processes on one port: one gateway to whoever looks from outside."""

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from gateway.metering.record import CallRecord, CallStatus
from gateway.metering.recovery import read_records
from tests.support.answers import Pace
from tests.support.gateway import chat_body
from tests.support.serve import (
    KEY,
    RunningHeadway,
    headway,
    headway_command,
    one_target,
    start_headway,
    wait_for,
)
from tests.support.upstream import ScriptedUpstream

HEADERS = {"authorization": f"Bearer {KEY}"}
TWO = ["--workers", "2"]


def _gateways(running: RunningHeadway) -> list[psutil.Process]:
    """The processes that serve, once both of them do."""
    found = psutil.Process(running.pid).children()
    return [process for process in found if "serve-one" in process.cmdline()]


def _serving(running: RunningHeadway, count: int = 2) -> set[int]:
    """Those that have taken a connection."""

    def look() -> set[int]:
        seen = {p.pid for p in _gateways(running) if p.net_connections("tcp")}
        httpx.get(running.root + "/livez")
        return seen if len(seen) == count else set()

    return set(wait_for(look, 60, "both gateways"))


async def _calls(running: RunningHeadway, count: int, **members: Any) -> list[httpx.Response]:
    """Calls at once, each over a connection of its own, so that both processes get some."""

    async def one(number: int) -> httpx.Response:
        async with httpx.AsyncClient(headers=HEADERS, timeout=20) as client:
            body = chat_body(f"call {number}", **members)
            return await client.post(f"{running.base_url}/chat/completions", json=body)

    return await asyncio.gather(*(one(number) for number in range(count)))


@pytest.fixture
def running(tmp_path: Path, upstream: ScriptedUpstream) -> Iterator[RunningHeadway]:
    """Two processes; UP takes 8 interactive calls at once."""
    lanes = {"interactive": {"max_in_flight": 8, "max_queue": 1000}}
    with headway(tmp_path, one_target(upstream.url, lanes=lanes), arguments=TWO) as process:
        _serving(process)
        yield process


def test_two_processes_are_one_gateway(running: RunningHeadway, upstream: ScriptedUpstream) -> None:
    """The cap holds, both work, each call is in the ledger, and the metrics are whole."""
    upstream.pace = Pace(first=0.05)
    answers = asyncio.run(_calls(running, 60))
    assert {answer.status_code for answer in answers} == {200}
    assert 5 <= upstream.peak <= 8  # more than the 4 that are one process's part

    def counted() -> bool:
        pages = [httpx.get(running.root + "/metrics", headers=HEADERS).text for _ in range(6)]
        return all('model="m",status="ok"} 60' in page for page in pages)

    wait_for(counted, 5, "whole metrics from whoever answers")
    ids = {answer.headers["x-request-id"] for answer in answers}
    wait_for(lambda: ids == {r.intent.id for r in read_records(running.data_dir / "journal")})
    journals = {path.name.partition(".")[0] for path in _journals(running)}
    assert len(journals) >= 2


def _journals(running: RunningHeadway) -> list[Path]:
    return list((running.data_dir / "journal").rglob("*.jsonl"))


def test_one_that_dies_is_started_again(
    running: RunningHeadway, upstream: ScriptedUpstream
) -> None:
    """Nobody is refused meanwhile, sums go on, and its open calls are in the ledger."""
    asyncio.run(_calls(running, 20))
    before = {process.pid for process in _gateways(running)}
    time.sleep(0.7)  # a snapshot of the metrics is at most half a second old
    victim = min(before)
    cut = asyncio.run(_streams_cut_by_a_kill(running, upstream, victim))
    assert 0 < cut < 8
    answers = asyncio.run(_calls(running, 20))
    assert {answer.status_code for answer in answers} == {200}
    now = _serving(running)
    assert victim not in now
    assert len(now & before) == 1
    done = 20 + 20 + 8 - cut
    wait_for(
        lambda: (
            f'model="m",status="ok"}} {done}'
            in httpx.get(running.root + "/metrics", headers=HEADERS).text
        )
    )
    wait_for(lambda: len(_interrupted(running)) == cut, 10, "the calls of the one that died")


async def _streams_cut_by_a_kill(
    running: RunningHeadway, upstream: ScriptedUpstream, victim: int
) -> int:
    """How many of eight streams break when a process is killed; the others must end well."""
    upstream.pace = Pace(token=0.1)

    async def one() -> bool:
        body = chat_body("long", stream=True, max_tokens=10)
        try:
            async with httpx.AsyncClient(headers=HEADERS, timeout=20) as client:
                answer = await client.post(f"{running.base_url}/chat/completions", json=body)
        except httpx.TransportError:
            return True
        assert answer.text.endswith("data: [DONE]\n\n")
        return False

    streams = [asyncio.create_task(one()) for _ in range(8)]
    await upstream.until(lambda: upstream.running >= 5)  # the others wait for a place
    await asyncio.sleep(0.2)
    os.kill(victim, signal.SIGKILL)
    cut = sum(await asyncio.gather(*streams))
    upstream.pace = Pace()
    return cut


def _interrupted(running: RunningHeadway) -> list[CallRecord]:
    records = read_records(running.data_dir / "journal")
    return [record for record in records if record.outcome.status is CallStatus.INTERRUPTED]


def test_all_of_them_drain(tmp_path: Path, upstream: ScriptedUpstream) -> None:
    """SIGTERM to the one that was started: new calls 503, ready 503, streams end with [DONE]."""
    upstream.pace = Pace(token=0.1)
    running = start_headway(tmp_path, one_target(upstream.url), arguments=TWO)
    _serving(running)

    async def drained() -> list[httpx.Response]:
        streams = asyncio.create_task(_calls(running, 8, stream=True, max_tokens=40))
        await upstream.until(lambda: upstream.running == 8)
        os.kill(running.pid, signal.SIGTERM)
        await asyncio.sleep(0.3)
        refused = await _calls(running, 8)
        assert {answer.status_code for answer in refused} == {503}
        assert all("retry-after" in answer.headers for answer in refused)
        async with httpx.AsyncClient() as client:
            assert (await client.get(running.root + "/readyz")).status_code == 503
        return await streams

    answers = asyncio.run(drained())
    assert all(answer.text.rstrip().endswith("data: [DONE]") for answer in answers)
    family = psutil.Process(running.pid).children(recursive=True)
    assert running.process.wait(20) == 0
    assert not psutil.wait_procs(family, timeout=2)[1]


def test_kill_9_leaves_nothing_behind(tmp_path: Path, upstream: ScriptedUpstream) -> None:
    """The port is free for a successor at once."""
    running = start_headway(tmp_path, one_target(upstream.url), arguments=TWO)
    family = psutil.Process(running.pid).children(recursive=True)
    running.process.kill()
    running.process.wait()
    assert not psutil.wait_procs(family, timeout=30)[1]


def test_what_cannot_be_shared_is_one_sentence(tmp_path: Path, upstream: ScriptedUpstream) -> None:
    """A port that another group has, and a cap that is smaller than the number of processes."""
    policy = tmp_path / "p.yaml"
    lanes = "{interactive: {max_in_flight: 2}}"
    policy.write_text(
        f"targets:\n  up: {{base_url: '{upstream.url}', models: [m], lanes: {lanes}}}\n"
    )
    command = ["serve", "--data-dir", str(tmp_path / "other"), "--policy", str(policy)]
    ended = headway_command([*command, "--port", "0", "--workers", "3"])
    assert ended.returncode == 78
    assert "3 workers cannot share the 2 interactive calls" in ended.stderr
    assert ended.stderr.count("\n") == 1
    with headway(tmp_path, one_target(upstream.url), arguments=TWO) as running:
        port = running.root.rpartition(":")[2]
        ended = headway_command([*command, "--port", port, *TWO])
    assert ended.returncode == 69
    assert "is in use" in ended.stderr
