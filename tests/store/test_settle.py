"""Settling: committed once, given back, taken back, cancelled, finished."""

import asyncio
from collections import Counter

import pytest

from gateway.core.usage import Usage
from gateway.core.work import (
    Committed,
    DeadRow,
    Lease,
    RowFailure,
    RunOutcomes,
    SegmentStatus,
    TryKind,
)
from gateway.store.client import StoreClient
from gateway.store.queue import QueueClient, RetryRule
from tests.support.segments import HOUR, SHARD, held, outcome, segment

RULE = RetryRule(max_tries=3, base_ms=1, cap_ms=1)


@pytest.fixture
def queue(store: StoreClient) -> QueueClient:
    """A queue on an empty server."""
    return QueueClient(store)


async def _lease(queue: QueueClient, rows: int, ttl_ms: int = 60_000) -> Lease:
    lease = await queue.lease(SHARD, "w", rows, 10**9, ttl_ms)
    assert lease is not None
    return lease


async def _expire(queue: QueueClient) -> None:
    await asyncio.sleep(0.005)
    await queue.reap(SHARD, 100, RULE)


async def test_a_repeated_commit_changes_nothing(queue: QueueClient) -> None:
    """Counters, meter and lease stay as they are when a reply was lost and it is sent again."""
    await queue.enqueue(SHARD, segment("a.0", 4))
    lease = await _lease(queue, 4)
    first = await queue.commit(SHARD, lease.id, "a.0", [outcome(0), outcome(1, ok=False)], HOUR)
    again = await queue.commit(SHARD, lease.id, "a.0", [outcome(0), outcome(1)], HOUR)
    assert (first.fresh, again.fresh, again.duplicate) == (2, 0, 2)
    view = await queue.segment(SHARD, "a.0")
    assert view is not None
    assert (view.ok, view.bad, view.leased) == (1, 1, 2)
    assert view.usage == Usage(3, 4, 2, 2)
    assert await queue.audit(SHARD) == []


async def test_runs_of_many_segments_in_one_commit(queue: QueueClient) -> None:
    """Each counts for itself, a wrong or late one for nothing; what tenants share is the sum."""
    for number in range(40):
        await queue.enqueue(SHARD, segment(f"s{number}.0", 2, tenant=f"t{number % 3}"))
    lease = await _lease(queue, 80)
    runs = [RunOutcomes(lease.id, f"s{n}.0", [outcome(0), outcome(1)]) for n in range(40)]
    runs[1] = RunOutcomes(lease.id, "s1.0", [outcome(0)])
    runs[2] = RunOutcomes(lease.id, "s2.0", [outcome(0), outcome(2)])
    runs[3] = RunOutcomes(lease.id, "gone.0", [outcome(0)])
    done = await queue.commit_all(SHARD, [*runs, runs[0]], HOUR)
    assert (done[0], done[1], done[2]) == (Committed(2, 0, 0), Committed(1, 0, 0), None)
    assert (done[3], done[40]) == (Committed(0, 0, 1), Committed(0, 0, 2))
    requests = [(await queue.meter(SHARD, f"t{n}", [HOUR]))["m"]["requests"] for n in range(3)]
    assert requests == [26, 25, 24]
    assert await queue.audit(SHARD) == []


async def test_the_first_commit_of_a_row_wins(queue: QueueClient) -> None:
    """A dispatcher that was taken for dead still delivers, and its successor changes nothing."""
    await queue.enqueue(SHARD, segment("a.0", 1))
    old = await _lease(queue, 1, ttl_ms=1)
    await _expire(queue)
    new = await _lease(queue, 1)
    assert (await queue.commit(SHARD, old.id, "a.0", [outcome(0)], HOUR)).fresh == 1
    assert (await queue.commit(SHARD, new.id, "a.0", [outcome(0)], HOUR)).fresh == 0
    assert (await queue.meter(SHARD, "t", [HOUR]))["m"]["requests"] == 1


async def test_a_late_result_takes_its_row_out_of_the_retries(queue: QueueClient) -> None:
    """A row that waits again and is then delivered is not run once more."""
    await queue.enqueue(SHARD, segment("a.0", 2))
    old = await _lease(queue, 2, ttl_ms=1)
    await _expire(queue)
    await queue.commit(SHARD, old.id, "a.0", [outcome(0)], HOUR)
    assert await queue.audit(SHARD) == []
    rows = set()
    while lease := await queue.lease(SHARD, "w", 9, 10**9, 5000):
        rows |= {row for _, row in held(lease)}
    assert rows == {1}


async def test_a_row_is_given_up_after_its_tries(queue: QueueClient) -> None:
    """The last try leaves the row with the caller, who writes its line."""
    await queue.enqueue(SHARD, segment("a.0", 1))
    failure = RowFailure(0, TryKind.ERROR, "upstream_failed")
    for _ in range(2):
        lease = await _lease(queue, 1)
        assert (await queue.nack(SHARD, lease.id, "a.0", [failure], RULE)).requeued == (0,)
        await asyncio.sleep(0.005)
        await queue.tick(SHARD, 10)
    lease = await _lease(queue, 1)
    assert (await queue.nack(SHARD, lease.id, "a.0", [failure], RULE)).exhausted == (0,)
    await queue.commit(SHARD, lease.id, "a.0", [outcome(0, ok=False)], HOUR)
    view = await queue.segment(SHARD, "a.0")
    assert view is not None
    assert (view.status, view.bad) == (SegmentStatus.FINALIZING, 1)


async def test_a_repeated_nack_charges_one_try(queue: QueueClient) -> None:
    """A nack whose reply was lost is harmless."""
    await queue.enqueue(SHARD, segment("a.0", 2))
    lease = await _lease(queue, 2)
    failure = RowFailure(0, TryKind.ERROR, "x")
    await queue.nack(SHARD, lease.id, "a.0", [failure], RULE)
    assert (await queue.nack(SHARD, lease.id, "a.0", [failure], RULE)).requeued == ()
    await asyncio.sleep(0.005)
    await queue.tick(SHARD, 10)
    assert (await _lease(queue, 1)).runs[0].rows[0].error_tries == 1


async def test_released_rows_come_back_uncharged(queue: QueueClient) -> None:
    """A dispatcher that shuts down costs nobody a try; releasing twice returns nothing more."""
    await queue.enqueue(SHARD, segment("a.0", 4))
    lease = await _lease(queue, 4)
    assert await queue.release(SHARD, lease.id, {"a.0": [1]}) == 1
    assert await queue.release(SHARD, lease.id) == 3
    assert await queue.release(SHARD, lease.id) == 0
    assert await queue.audit(SHARD) == []
    again = await _lease(queue, 4)
    assert {(row.error_tries, row.crash_tries) for row in again.runs[0].rows} == {(0, 0)}


async def test_a_poison_row_costs_its_neighbours_nothing(queue: QueueClient) -> None:
    """QUE-18: crashed rows come back in shrinking groups; alone in two crashes a row is dead."""
    await queue.enqueue(SHARD, segment("a.0", 64))
    deliveries: Counter[int] = Counter()
    for _ in range(40):
        lease = await queue.lease(SHARD, "w", 64, 10**9, 1)
        if lease is None:
            break
        rows = [row for _, row in held(lease)]
        deliveries.update(rows)
        if 13 in rows:
            await _expire(queue)
        else:
            await queue.commit(SHARD, lease.id, "a.0", [outcome(row) for row in rows], HOUR)
    assert deliveries[13] == 5
    assert max(count for row, count in deliveries.items() if row != 13) <= 4
    assert await queue.dead(SHARD, 10) == [DeadRow("a.0", 13, "max_deliveries", "")]
    assert await queue.audit(SHARD) == []
    await queue.commit(SHARD, "", "a.0", [outcome(13, ok=False)], HOUR)
    view = await queue.segment(SHARD, "a.0")
    assert view is not None
    assert (view.status, view.ok, view.bad) == (SegmentStatus.FINALIZING, 63, 1)
    assert await queue.dead(SHARD, 10) == []


async def test_a_dead_worker_crashes_all_its_rows_as_one(queue: QueueClient) -> None:
    """Leases of a row or two each come back in groups a quarter of all that it held."""
    await queue.enqueue(SHARD, segment("a.0", 40))
    for size in (1, 2) * 13:
        assert await queue.lease(SHARD, "w", size, 10**9, 1)
    other = await queue.lease(SHARD, "other", 1, 10**9, 60_000)
    assert other is not None
    await _expire(queue)
    for _ in range(4):
        suspects = await queue.lease(SHARD, "w", 64, 10**9, 60_000)
        assert suspects is not None
        assert len(held(suspects)) == 9
        assert {row.crash_tries for row in suspects.runs[0].rows} == {1}
        rows = [row for _, row in held(suspects)]
        await queue.commit(SHARD, suspects.id, "a.0", [outcome(row) for row in rows], HOUR)
    assert await queue.audit(SHARD) == []


async def test_rows_that_crash_with_their_target_do_so_as_one(queue: QueueClient) -> None:
    """Handed back from leases of one row; a suspect crashes among those of its lease alone."""
    await queue.enqueue(SHARD, segment("a.0", 16))
    for lease in [await _lease(queue, 1) for _ in range(16)]:
        await _crash(queue, lease, together=16)
    suspects = await _lease(queue, 64)
    assert len(held(suspects)) == 4
    await _crash(queue, suspects, together=16)
    sizes = [len(held(await _lease(queue, 64))) for _ in range(7)]
    assert sizes == [4, 4, 4, 1, 1, 1, 1]
    assert await queue.audit(SHARD) == []


async def _crash(queue: QueueClient, lease: Lease, together: int) -> None:
    failures = [RowFailure(row, TryKind.CRASH, "x", 0, together) for _, row in held(lease)]
    await queue.nack(SHARD, lease.id, "a.0", failures, RULE)
    await asyncio.sleep(0.005)  # until they are due


async def test_eight_reapers_return_each_row_once(queue: QueueClient) -> None:
    """Reaping is one script: no lock to lose, nothing returned twice."""
    await queue.enqueue(SHARD, segment("a.0", 300))
    while await queue.lease(SHARD, "w", 5, 10**9, 1):
        pass
    await asyncio.sleep(0.005)
    rounds = await asyncio.gather(*(queue.reap(SHARD, 100, RULE) for _ in range(8)))
    assert sum(reaped.returned for reaped in rounds) == 300
    assert await queue.audit(SHARD) == []


async def test_cancel_stops_what_is_queued_at_once(queue: QueueClient) -> None:
    """Nothing is leased after it; rows in flight may deliver until they are given back."""
    await queue.enqueue(SHARD, segment("a.0", 10))
    lease = await _lease(queue, 3)
    states = await queue.cancel(SHARD, "a.0", 60_000)
    assert states == (SegmentStatus.QUEUED, SegmentStatus.CANCELLING)
    assert await queue.lease(SHARD, "w", 10, 10**9, 5000) is None
    assert (await queue.commit(SHARD, lease.id, "a.0", [outcome(0)], HOUR)).fresh == 1
    await queue.release(SHARD, lease.id)
    view = await queue.segment(SHARD, "a.0")
    assert view is not None
    assert (view.status, view.closing, view.ok) == ("finalizing", "cancelled", 1)
    assert (await queue.commit(SHARD, "", "a.0", [outcome(5)], HOUR)).closed == 1


async def test_the_grace_of_a_cancel_ends(queue: QueueClient) -> None:
    """A dispatcher that never answers cannot hold a cancelled segment open."""
    await queue.enqueue(SHARD, segment("a.0", 2))
    await _lease(queue, 1)
    await queue.cancel(SHARD, "a.0", 10)
    await asyncio.sleep(0.02)
    await queue.tick(SHARD, 10)
    view = await queue.segment(SHARD, "a.0")
    assert view is not None
    assert view.status is SegmentStatus.FINALIZING


async def test_a_passed_deadline_closes_the_segment(queue: QueueClient) -> None:
    """What was done stays done, what was not is expired."""
    await queue.enqueue(SHARD, segment("a.0", 3, window_ms=300))
    lease = await _lease(queue, 1)
    await queue.commit(SHARD, lease.id, "a.0", [outcome(0)], HOUR)
    await asyncio.sleep(0.35)
    assert (await queue.tick(SHARD, 10)).expired == 1
    view = await queue.segment(SHARD, "a.0")
    assert view is not None
    assert (view.status, view.closing, view.ok) == ("finalizing", "expired", 1)


async def test_only_the_newest_fence_finishes(queue: QueueClient) -> None:
    """A finisher that was slow cannot publish over its successor."""
    await queue.enqueue(SHARD, segment("a.0", 1))
    lease = await _lease(queue, 1)
    await queue.commit(SHARD, lease.id, "a.0", [outcome(0)], HOUR)
    slow = await queue.finish_claim(SHARD, "f1", 300)
    assert slow is not None
    assert await queue.finish_claim(SHARD, "f2", 10) is None
    await asyncio.sleep(0.35)
    quick = await queue.finish_claim(SHARD, "f2", 5000)
    assert quick is not None
    assert quick.fence > slow.fence
    assert not await queue.finish_commit(SHARD, "a.0", slow.fence)
    assert await queue.finish_commit(SHARD, "a.0", quick.fence)
    assert not await queue.finish_commit(SHARD, "a.0", quick.fence)
    assert (await queue.refs(SHARD, "a.0")) == (b"", b"")
