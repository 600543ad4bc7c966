"""The queue server's clock is set forward and back, and the gateway's is not the server's."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator

import pytest

from gateway.core.work import RowFailure, TryKind
from gateway.store import scripts
from gateway.store.client import StoreClient
from gateway.store.keys import shard_of
from gateway.store.queue import RetryRule
from tests.support.batch import chat_line, ids
from tests.support.batch_plane import HOUR, BatchPlane, every

_SHARD = shard_of("m")
_ROWS = 8
_TEN_MINUTES = 600_000
_RULE = RetryRule(max_tries=5, base_ms=1, cap_ms=1, max_crashes=100)
Offset = Callable[[int], Awaitable[None]]


@pytest.fixture
def set_clock(store: StoreClient, monkeypatch: pytest.MonkeyPatch) -> Iterator[Offset]:
    """Makes the time of every script so many ms later than it is."""
    shipped = scripts._text
    clocks = {"lib": ("t[1] * 1000", "call"), "job_claim": ("time[1] * 1000", "redis.call")}

    def text(name: str) -> str:
        whole = shipped(name)
        if name in clocks:
            now, call = clocks[name]
            assert whole.count(now) == 1
            later = f"(tonumber({call}('GET', 'test:clock')) or 0)"
            whole = whole.replace(now, f"{later} + {now}")
        return whole

    def forget() -> None:
        scripts.queue_script.cache_clear()
        scripts.whole_script.cache_clear()

    monkeypatch.setattr(scripts, "_text", text)
    forget()

    async def offset(ms: int) -> None:
        await store.execute_command("SET", "test:clock", ms)

    yield offset
    monkeypatch.undo()
    forget()


async def _whole(plane: BatchPlane, batch_id: str) -> None:
    """The batch completed, each row once, and is billed as such."""
    await plane.finish()
    batch = await plane.get(batch_id)
    assert batch["status"] == "completed"
    assert ids(await plane.lines(batch["output_file_id"])) == sorted(map(str, range(_ROWS)))
    meter = await plane.queue.meter(_SHARD, "a", [HOUR])
    assert (meter["m"]["requests"], meter["m"]["prompt"]) == (_ROWS, 10 * _ROWS)
    assert await plane.queue.audit(_SHARD) == []


async def test_the_servers_clock_leaps_forward(set_clock: Offset, plane: BatchPlane) -> None:
    """Leases end early and rows run twice, counted once; no deadline passes for it."""
    lines = [chat_line(str(n), "x") for n in range(_ROWS)]
    batch_id = await plane.start(*lines, completion_window="300s")
    await plane.queue.tick(_SHARD, 10)
    lease = await plane.queue.lease(_SHARD, "w", 5, 10**9, 60_000)
    assert lease is not None
    await set_clock(_TEN_MINUTES)
    assert (await plane.queue.tick(_SHARD, 10)).expired == 0
    assert (await plane.queue.reap(_SHARD, 10, _RULE)).returned == 5
    while await plane.run(64):
        pass
    for run in lease.runs:
        await plane._settle(lease.id, run, every)
    await _whole(plane, batch_id)


@pytest.mark.parametrize("back", [2_000, _TEN_MINUTES])
async def test_the_servers_clock_is_set_back(
    set_clock: Offset, plane: BatchPlane, back: int
) -> None:
    """Rows of the dead, and rows that wait for another try, wait no longer than they had to."""
    await set_clock(back)
    batch_id = await plane.start(*(chat_line(str(n), "x") for n in range(_ROWS)))
    dead = await plane.queue.lease(_SHARD, "w", 3, 10**9, 200)
    failing = await plane.queue.lease(_SHARD, "w", 2, 10**9, 60_000)
    assert dead is not None
    assert failing is not None
    failures = [RowFailure(row.index, TryKind.THROTTLE, "x", 100) for row in failing.runs[0].rows]
    await plane.queue.nack(_SHARD, failing.id, f"{batch_id}.0", failures, _RULE)
    await plane.queue.tick(_SHARD, 10)
    await set_clock(0)
    done = 0
    for _ in range(40):
        await plane.queue.tick(_SHARD, 10)
        await plane.queue.reap(_SHARD, 10, _RULE)
        done += await plane.run(64)
        await asyncio.sleep(0.05)
    assert done == _ROWS
    await _whole(plane, batch_id)


async def test_claims_from_before_the_clock_was_set_back(
    set_clock: Offset, plane: BatchPlane
) -> None:
    """Whoever validates or finalises died, then the clock was set back: another takes over."""
    await set_clock(_TEN_MINUTES)
    content = json.dumps(chat_line("0", "x")).encode()
    batch_id = str((await plane.create(await plane.upload(content)))["id"])
    assert await plane.batches.claim_intake(100) == batch_id
    await set_clock(0)
    assert await plane.batches.claim_intake(100) == batch_id
    await asyncio.sleep(0.12)
    assert await plane.intake.step()
    await plane.queue.tick(_SHARD, 10)
    await set_clock(_TEN_MINUTES)
    await plane.queue.tick(_SHARD, 10)
    assert await plane.run(1) == 1
    assert await plane.queue.finish_claim(_SHARD, "dead", 100) is not None
    await set_clock(0)
    await plane.queue.tick(_SHARD, 10)
    await asyncio.sleep(1.2)  # a second is how exactly it is known by how much
    await plane.finish()
    assert (await plane.get(batch_id))["status"] == "completed"


@pytest.mark.parametrize("ahead", [-_TEN_MINUTES, _TEN_MINUTES])
async def test_another_clock_than_the_servers(
    set_clock: Offset, plane: BatchPlane, ahead: int
) -> None:
    """A gateway or dispatcher that is ten minutes ahead or behind changes nothing."""
    await set_clock(-ahead)
    batch_id = await plane.start(*(chat_line(str(n), "x") for n in range(_ROWS)))
    lease = await plane.queue.lease(_SHARD, "w", 3, 10**9, 50)
    assert lease is not None
    await asyncio.sleep(0.1)
    await plane.queue.tick(_SHARD, 10)
    assert (await plane.queue.reap(_SHARD, 10, _RULE)).returned == 3
    while await plane.run(64):
        pass
    await _whole(plane, batch_id)
