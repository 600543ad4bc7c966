"""Ways in which other queues lost or repeated work, tried on this one.

Two reclaimers at once: ``test_eight_reapers_return_each_row_once`` in ``tests/store``. Work that
outlives its lease: QUE-02 in ``test_queue_cases``.
"""

import asyncio
import time
from pathlib import Path
from random import Random

import pytest

from gateway.batches.rows import RowSource
from gateway.core.clock import SystemClock
from gateway.core.work import Lease, RowFailure, TryKind
from gateway.dispatch.held import Holdings
from gateway.dispatch.reaper import Reaper
from gateway.dispatch.settle import Settler
from gateway.store.blobs import LocalBlobs
from gateway.store.client import StoreClient
from gateway.store.keys import shard_key
from gateway.store.parts import PartFiles
from gateway.store.queue import QueueClient, RetryRule
from gateway.store.scripts import queue_script
from tests.support.batch import chat_line
from tests.support.batch_plane import BatchPlane
from tests.support.segments import HOUR, SHARD, held, outcome, segment

RULE = RetryRule(max_tries=5, base_ms=1000, cap_ms=60_000, max_crashes=1000)


@pytest.fixture
def queue(store: StoreClient) -> QueueClient:
    """A queue on an empty server."""
    return QueueClient(store)


def _reaper(queue: QueueClient, root: Path, interval: float) -> Reaper:
    clock = SystemClock()
    settler = Settler(queue, PartFiles(root), Holdings(clock), RULE, clock)
    return Reaper(queue, RowSource(LocalBlobs(root)), settler, RULE, interval)


async def _lease(queue: QueueClient, rows: int, ttl_ms: int = 60_000) -> Lease:
    lease = await queue.lease(SHARD, "w", rows, 10**9, ttl_ms)
    assert lease is not None
    return lease


async def _lease_each(store: StoreClient, leases: int) -> None:
    """So many leases of one row, in one go."""
    script = queue_script("lease")
    await store.script_load(script.source)
    async with store.pipeline(transaction=False) as pipe:
        for number in range(leases):
            limits = ("w", 1, 1000, 60_000, 16, 0, 0)
            pipe.evalsha(script.sha, 1, shard_key(SHARD, "meta"), *limits, f"lease-{number}")
        await pipe.execute()


async def _run_all_out(store: StoreClient) -> None:
    """Every lease has run out: the scores of the set become 0."""
    key = shard_key(SHARD, "exp")
    await store.execute_command("ZUNIONSTORE", key, 1, key, "WEIGHTS", 0)


async def _rows_left(queue: QueueClient) -> list[int]:
    rows: list[int] = []
    while lease := await queue.lease(SHARD, "w", 1024, 10**9, 60_000):
        rows += [row for _, row in held(lease)]
    return rows


async def test_ten_thousand_leases_run_out(
    store: StoreClient, queue: QueueClient, tmp_path: Path
) -> None:
    """Scaled to a tenth in time: all rows wait again within another ttl, not some per sweep."""
    ttl, interval = 6.0, 0.1
    await queue.enqueue(SHARD, segment("a.0", 10_000))
    await _lease_each(store, 10_000)
    assert (await queue.stats(SHARD))["leases"] == 10_000
    await _run_all_out(store)
    started = time.monotonic()
    reaping = asyncio.create_task(_reaper(queue, tmp_path, interval).run())
    while (await queue.stats(SHARD))["rows_leased"]:
        assert time.monotonic() - started < ttl
        await asyncio.sleep(0.05)
    reaping.cancel()
    await asyncio.gather(reaping, return_exceptions=True)
    assert (await queue.stats(SHARD))["rows_waiting"] == 10_000


async def test_a_reaper_dies_at_its_work(
    store: StoreClient, queue: QueueClient, tmp_path: Path
) -> None:
    """There is no lock to be left behind: the next one takes back the rest, each row once."""
    await queue.enqueue(SHARD, segment("a.0", 600))
    await _lease_each(store, 600)
    await _run_all_out(store)
    chance = Random(12)
    for _ in range(12):
        dying = asyncio.create_task(_reaper(queue, tmp_path, 1).sweep(SHARD))
        await asyncio.sleep(chance.uniform(0, 0.004))
        dying.cancel()
        await asyncio.gather(dying, return_exceptions=True)
    await _reaper(queue, tmp_path, 1).sweep(SHARD)
    assert sorted(await _rows_left(queue)) == list(range(600))
    assert await queue.audit(SHARD) == []


async def test_a_frozen_dispatcher_wakes_up(queue: QueueClient) -> None:
    """Its failures, sent three ttl too late, are not written over what its successor delivered."""
    await queue.enqueue(SHARD, segment("a.0", 2))
    frozen = await _lease(queue, 2, ttl_ms=20)
    await asyncio.sleep(0.06)
    assert (await queue.reap(SHARD, 10, RULE)).returned == 2
    delivered: list[int] = []
    while lease := await queue.lease(SHARD, "w2", 2, 10**9, 60_000):
        rows = [row for _, row in held(lease)]
        await queue.commit(SHARD, lease.id, "a.0", [outcome(row) for row in rows], HOUR)
        delivered += rows
    failures = [RowFailure(row, TryKind.ERROR, "x") for row in range(2)]
    assert (await queue.nack(SHARD, frozen.id, "a.0", failures, RULE)).requeued == ()
    late = [outcome(row, ok=False) for row in range(2)]
    assert (await queue.commit(SHARD, frozen.id, "a.0", late, HOUR)).fresh == 0
    view = await queue.segment(SHARD, "a.0")
    assert view is not None
    assert (sorted(delivered), view.ok, view.bad) == ([0, 1], 2, 0)
    assert (await queue.meter(SHARD, "t", [HOUR]))["m"]["failed"] == 0


async def test_a_dispatcher_dies_before_it_uses_its_lease(queue: QueueClient) -> None:
    """Rows that were taken and never seen again come back, all of them."""
    await queue.enqueue(SHARD, segment("a.0", 100))
    while await queue.lease(SHARD, "w", 7, 10**9, 1):
        pass
    await asyncio.sleep(0.01)
    await queue.reap(SHARD, 100, RULE)
    assert sorted(await _rows_left(queue)) == list(range(100))


async def test_a_finaliser_dies_at_every_step(plane: BatchPlane) -> None:
    """Whatever was half done, the next one ends the batch with one pair of files."""
    batch_id = await plane.start(*(chat_line(str(n), "x") for n in range(20)))
    while await plane.run(64, lambda row: row.index % 3 > 0):
        pass
    for step in range(25):
        dying = asyncio.create_task(plane.another_finishing(f"f{step}", claim_ms=1).step())
        await asyncio.sleep(step / 1000)
        dying.cancel()
        await asyncio.gather(dying, return_exceptions=True)
        await asyncio.sleep(0.002)
    await plane.finish()
    batch = await plane.get(batch_id)
    lines = await plane.lines(batch["output_file_id"]) + await plane.lines(
        batch["error_file_id"], "batch_error_line"
    )
    assert batch["status"] == "completed"
    assert sorted(int(line["custom_id"]) for line in lines) == list(range(20))
    files = (await plane.a.get("/v1/files", params={"purpose": "batch_output"})).json()["data"]
    assert len(files) == 2


async def test_tries_against_a_target_that_only_throttles(
    store: StoreClient, queue: QueueClient
) -> None:
    """In simulated time: as many tries as the rule has, each delay drawn below its bound."""
    rows, retries = 200, shard_key(SHARD, "r:a.0")
    await queue.enqueue(SHARD, segment("a.0", rows))
    failures = [RowFailure(row, TryKind.THROTTLE, "x") for row in range(rows)]
    for attempt in range(1, RULE.max_tries):
        lease = await _lease(queue, rows)
        before = await _now_ms(store)
        assert len((await queue.nack(SHARD, lease.id, "a.0", failures, RULE)).requeued) == rows
        bound = min(RULE.cap_ms, RULE.base_ms * 2 ** (attempt - 1))
        due = await store.execute_command("ZMSCORE", retries, *range(rows))
        delays = [float(at) - before for at in due]
        assert max(delays) <= bound + 1000
        assert 0.4 * bound <= sum(delays) / rows <= 0.6 * bound + 1000
        await store.execute_command("ZUNIONSTORE", retries, 1, retries, "WEIGHTS", 0)
        await store.execute_command("ZADD", shard_key(SHARD, "later"), 0, "a.0")
        await queue.tick(SHARD, 10)
    lease = await _lease(queue, rows)
    assert len((await queue.nack(SHARD, lease.id, "a.0", failures, RULE)).exhausted) == rows


async def test_memory_comes_back(store: StoreClient, queue: QueueClient) -> None:
    """After 20 batches the server holds what it held after the first, and no key of a row."""
    await _whole_life(queue, "first.0")
    base = await _used(store)
    for number in range(20):
        await _whole_life(queue, f"a{number}.0")
    assert await _used(store) <= 1.05 * base
    names = [key.decode() for key in await store.execute_command("KEYS", shard_key(SHARD, "*"))]
    kinds = {name.partition("}:")[2].partition(":")[0] for name in names}
    assert kinds <= {"meta", "tenants", "act", "tn", "s", "m", "wake"}


async def _whole_life(queue: QueueClient, name: str) -> None:
    await queue.enqueue(SHARD, segment(name, 2000))
    while lease := await queue.lease(SHARD, "w", 512, 10**9, 60_000):
        rows = [row for _, row in held(lease)]
        await queue.commit(SHARD, lease.id, name, [outcome(row) for row in rows], HOUR)
    claim = await queue.finish_claim(SHARD, "f", 60_000)
    assert claim is not None
    assert await queue.finish_commit(SHARD, name, claim.fence)


async def _used(store: StoreClient) -> int:
    await asyncio.sleep(0.05)  # what is unlinked is freed by a thread of the server
    info = (await store.execute_command("INFO", "memory"))["used_memory"]
    return int(info)


async def _now_ms(store: StoreClient) -> float:
    seconds, micros = await store.execute_command("TIME")
    return 1000 * int(seconds) + int(micros) / 1000
