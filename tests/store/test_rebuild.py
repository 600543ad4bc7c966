"""A segment made again from results is as if it had never been lost."""

import pytest

from gateway.core.usage import Usage
from gateway.core.work import SegmentStatus
from gateway.store.client import StoreClient
from gateway.store.queue import QueueClient
from gateway.store.rebuild import EndedSegment, HourSums, count_row
from tests.support.segments import HOUR, SHARD, held, outcome, segment

NEXT = "2026113007"


@pytest.fixture
def queue(store: StoreClient) -> QueueClient:
    """A queue on an empty server."""
    return QueueClient(store)


async def _run(queue: QueueClient, rows: int) -> list[int]:
    lease = await queue.lease(SHARD, "w", rows, 10**9, 60_000)
    found = [] if lease is None else [row for _, row in held(lease)]
    if lease is not None:
        await queue.commit(SHARD, lease.id, "a.0", [outcome(row) for row in found], NEXT)
    return found


async def test_rows_with_a_result_are_done_and_the_others_run(queue: QueueClient) -> None:
    """Bits, references, counters and meter are back; missing rows come first, then the rest."""
    done = {HOUR: [outcome(0), outcome(3, ok=False)], NEXT: [outcome(4)]}
    assert await queue.rebuild(SHARD, segment("a.0", 9), done)
    assert not await queue.rebuild(SHARD, segment("a.0", 9), done)
    view = await queue.segment(SHARD, "a.0")
    assert view is not None
    assert (view.ok, view.bad, view.usage) == (2, 1, Usage(10, 17, 3, 3))
    bits, refs = await queue.refs(SHARD, "a.0")
    assert (bits, len(refs)) == (bytes([0b10011000]), 80)
    assert await queue.good(SHARD, "a.0") == bytes([0b10001000])
    meter = await queue.meter(SHARD, "t", [HOUR])
    assert (meter["m"]["requests"], meter["m"]["failed"], meter["m"]["prompt"]) == (2, 1, 5)
    assert await queue.audit(SHARD) == []
    assert await queue.shards() == [SHARD]
    assert await queue.tenants_of(SHARD) == ["t"]
    assert await _run(queue, 4) == [1, 2, 5, 6]
    assert await queue.audit(SHARD) == []
    assert await _run(queue, 9) == [7, 8]
    view = await queue.segment(SHARD, "a.0")
    assert view is not None
    assert view.status is SegmentStatus.FINALIZING
    assert (await queue.meter(SHARD, "t", [HOUR, NEXT]))["m"]["requests"] == 9


async def test_a_segment_that_was_all_done_is_finished_at_once(queue: QueueClient) -> None:
    """Nothing of it is leased; a claim from before the loss is worth nothing."""
    await queue.enqueue(SHARD, segment("a.0", 3))
    await _run(queue, 3)
    old = await queue.finish_claim(SHARD, "f", 1000)
    assert old is not None
    await queue._redis.execute_command("FLUSHALL")
    await queue.rebuild(SHARD, segment("a.0", 3), {HOUR: [outcome(n) for n in range(3)]})
    assert await _run(queue, 3) == []
    claim = await queue.finish_claim(SHARD, "f", 1000)
    assert claim is not None
    assert not await queue.finish_commit(SHARD, "a.0", old.fence)
    assert await queue.finish_commit(SHARD, "a.0", claim.fence)


async def test_many_rows_that_waited_for_a_retry(queue: QueueClient) -> None:
    """Tens of thousands of missing rows below the last result are no trouble."""
    await queue.rebuild(SHARD, segment("a.0", 50_000), {HOUR: [outcome(49_998)]})
    assert await queue.audit(SHARD) == []
    assert await _run(queue, 2) == [0, 1]


async def test_a_lease_from_before_the_loss_is_gone(queue: QueueClient) -> None:
    """Its rows may still be delivered, once; its id is never given out again."""
    await queue.enqueue(SHARD, segment("a.0", 2))
    old = await queue.lease(SHARD, "w", 2, 10**9, 60_000)
    assert old is not None
    await queue._redis.execute_command("FLUSHALL")
    assert (await queue.commit(SHARD, old.id, "a.0", [outcome(0)], HOUR)).closed == 1
    await queue.rebuild(SHARD, segment("a.0", 2), {})
    new = await queue.lease(SHARD, "w", 2, 10**9, 60_000)
    assert new is not None
    assert old.id != new.id
    assert (await queue.extend(SHARD, "w", 60_000, [old.id, new.id])).gone == (old.id,)
    assert (await queue.commit(SHARD, old.id, "a.0", [outcome(0)], HOUR)).fresh == 1
    assert (await queue.commit(SHARD, new.id, "a.0", [outcome(0)], HOUR)).duplicate == 1
    assert await queue.audit(SHARD) == []


async def test_rows_done_ahead_of_the_cursor_are_passed_over(queue: QueueClient) -> None:
    """A power loss undid leases, and their results come in: nobody runs those rows again."""
    await queue.enqueue(SHARD, segment("a.0", 12))
    results = [outcome(row) for row in (0, 1, 5, 11)]
    assert (await queue.commit(SHARD, "lost", "a.0", results, HOUR)).fresh == 4
    assert await queue.audit(SHARD) == []
    rows: list[int] = []
    while some := await _run(queue, 4):
        rows += some
        assert await queue.audit(SHARD) == []
    assert rows == [2, 3, 4, 6, 7, 8, 9, 10]


def _ended(rows: int, done: int) -> EndedSegment:
    hours: HourSums = {}
    for row in range(done):
        count_row(hours, HOUR, outcome(row).usage, ok=True)
    usage = sum((outcome(row).usage for row in range(done)), Usage())
    closing = SegmentStatus.COMPLETED
    return EndedSegment("a.0", "a", "t", "m", rows, done, rows - done, closing, usage, hours)


async def test_an_ended_segment_is_metered_again_once(queue: QueueClient) -> None:
    """After a loss of everything the bill comes from the final state."""
    ended = _ended(4, 4)
    assert [await queue.settle_ended(SHARD, ended) for _ in range(2)] == [True, False]
    meter = (await queue.meter(SHARD, "t", [HOUR]))["m"]
    assert (meter["requests"], meter["failed"], meter["prompt"]) == (4, 0, 10)
    view = await queue.segment(SHARD, "a.0")
    assert view is not None
    assert (view.status, view.ok, view.usage) == (SegmentStatus.COMPLETED, 4, ended.usage)
    assert await queue.shards() == [SHARD]


async def test_a_segment_that_fell_behind_its_final_state(queue: QueueClient) -> None:
    """A power loss undid its last commits, and one row ran again: billed as its files say."""
    await queue.enqueue(SHARD, segment("a.0", 4))
    lease = await queue.lease(SHARD, "w", 3, 10**9, 60_000)
    assert lease is not None
    await queue.commit(SHARD, lease.id, "a.0", [outcome(0)], HOUR)
    await queue.commit(SHARD, lease.id, "a.0", [outcome(1)], NEXT)
    assert await queue.settle_ended(SHARD, _ended(4, 4))
    meter = await queue.meter(SHARD, "t", [HOUR])
    assert (meter["m"]["requests"], meter["m"]["prompt"]) == (4, 10)
    assert (await queue.meter(SHARD, "t", [NEXT]))["m"]["requests"] == 0
    assert await _run(queue, 4) == []
    assert (await queue.commit(SHARD, lease.id, "a.0", [outcome(2)], HOUR)).closed == 1
    assert await queue.finish_claim(SHARD, "f", 1000) is None
    assert await queue.audit(SHARD) == []
