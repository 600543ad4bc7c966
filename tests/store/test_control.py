"""What an operator does: pause, resume, reorder, try again, forget."""

import asyncio

import pytest

from gateway.core.errors import Conflict
from gateway.core.work import DeadRow, Lease, RowFailure, TryKind
from gateway.store.client import StoreClient
from gateway.store.control import Scope
from gateway.store.keys import shard_key
from gateway.store.queue import QueueClient, RetryRule
from tests.support.segments import HOUR, SHARD, held, outcome, segment

RULE = RetryRule(max_tries=2, base_ms=1, cap_ms=1, max_crashes=2)
SCOPES = [Scope(), Scope("tenant", "t"), Scope("segment", "a.0")]


@pytest.fixture
def queue(store: StoreClient) -> QueueClient:
    """A queue on an empty server."""
    return QueueClient(store)


async def _lease(queue: QueueClient, rows: int, ttl_ms: int = 60_000) -> Lease:
    lease = await queue.lease(SHARD, "w", rows, 10**9, ttl_ms)
    assert lease is not None
    return lease


@pytest.mark.parametrize("scope", SCOPES, ids=lambda scope: scope.kind)
async def test_paused_work_is_not_leased(queue: QueueClient, scope: Scope) -> None:
    """Rows in flight finish, rows given back wait, and a resume brings all of them."""
    await queue.enqueue(SHARD, segment("a.0", 6))
    lease = await _lease(queue, 3)
    assert await queue.pause(SHARD, scope) is False
    assert await queue.pause(SHARD, scope) is True
    assert await queue.lease(SHARD, "w", 9, 10**9, 5000) is None
    assert (await queue.extend(SHARD, "w", 60_000, [lease.id])).stopped == ()
    assert (await queue.commit(SHARD, lease.id, "a.0", [outcome(0)], HOUR)).fresh == 1
    await queue.nack(SHARD, lease.id, "a.0", [RowFailure(1, TryKind.ERROR, "x", 1)], RULE)
    await queue.release(SHARD, lease.id)
    await asyncio.sleep(0.005)
    await queue.tick(SHARD, 10)
    assert await queue.lease(SHARD, "w", 9, 10**9, 5000) is None
    assert await queue.audit(SHARD) == []
    assert await queue.resume(SHARD, scope) is True
    assert await queue.audit(SHARD) == []
    rows = {row for _, row in held(await _lease(queue, 9))}
    assert rows == {1, 2, 3, 4, 5}


async def test_a_pause_leaves_others_alone(queue: QueueClient) -> None:
    """Another tenant, or another segment of the same one, goes on."""
    await queue.enqueue(SHARD, segment("a.0", 2))
    await queue.enqueue(SHARD, segment("b.0", 2))
    await queue.enqueue(SHARD, segment("c.0", 2, tenant="u"))
    await queue.pause(SHARD, Scope("segment", "a.0"))
    assert {name for name, _ in held(await _lease(queue, 9))} == {"b.0", "c.0"}
    await queue.resume(SHARD, Scope("segment", "a.0"))
    await queue.enqueue(SHARD, segment("d.0", 2, tenant="u"))
    await queue.pause(SHARD, Scope("tenant", "u"))
    await queue.enqueue(SHARD, segment("e.0", 2, tenant="u"))
    assert {name for name, _ in held(await _lease(queue, 9))} == {"a.0"}


async def test_a_paused_segment_still_expires_and_can_be_cancelled(queue: QueueClient) -> None:
    """A pause is no way around the completion window."""
    await queue.enqueue(SHARD, segment("a.0", 2, window_ms=20))
    await queue.enqueue(SHARD, segment("b.0", 2))
    for name in ("a.0", "b.0"):
        await queue.pause(SHARD, Scope("segment", name))
    await asyncio.sleep(0.03)
    assert (await queue.tick(SHARD, 10)).expired == 1
    await queue.cancel(SHARD, "b.0", 0)
    assert (await queue.stats(SHARD))["finishing"] == 2
    assert await queue.audit(SHARD) == []


async def test_a_resume_keeps_a_delay(queue: QueueClient) -> None:
    """What was to wait for its time still does."""
    await queue.enqueue(SHARD, segment("a.0", 2, delay_ms=400))
    await queue.pause(SHARD, Scope("segment", "a.0"))
    await queue.resume(SHARD, Scope("segment", "a.0"))
    assert await queue.lease(SHARD, "w", 9, 10**9, 5000) is None
    await asyncio.sleep(0.45)
    await queue.tick(SHARD, 10)
    assert (await _lease(queue, 9)).rows == 2


async def test_nothing_to_pause(queue: QueueClient) -> None:
    """An unknown name is told apart."""
    assert await queue.pause(SHARD, Scope("segment", "none.0")) is None
    assert await queue.resume(SHARD, Scope("tenant", "nobody")) is None


async def test_a_priority_moves_a_segment_ahead(queue: QueueClient) -> None:
    """A point is a minute of deadline, inside the tenant."""
    await queue.enqueue(SHARD, segment("a.0", 2))
    await queue.enqueue(SHARD, segment("b.0", 2, window_ms=3_700_000))
    assert await queue.reprioritise(SHARD, Scope("segment", "b.0"), 10) == 1
    assert held(await _lease(queue, 1)) == [("b.0", 0)]
    assert await queue.reprioritise(SHARD, Scope("tenant", "t"), 0) == 2
    assert held(await _lease(queue, 1)) == [("a.0", 0)]
    assert await queue.reprioritise(SHARD, Scope("tenant", "nobody"), 5) == 0
    assert await queue.audit(SHARD) == []


async def test_a_weight_holds_for_what_is_queued(queue: QueueClient) -> None:
    """Three times the weight, three times the rows."""
    for tenant in "ab":
        await queue.enqueue(SHARD, segment(f"{tenant}.0", 500, tenant=tenant))
    assert await queue.reweigh(SHARD, "b", 3) == 1
    names = [name for name, _ in held(await _lease(queue, 256))]
    assert 2.5 < names.count("b.0") / names.count("a.0") < 3.5


async def test_given_up_rows_keep_their_reason(queue: QueueClient) -> None:
    """Why, and the last error before that; in the list of what was given up as well."""
    await queue.enqueue(SHARD, segment("a.0", 1))
    failure = RowFailure(0, TryKind.ERROR, "upstream_failed", 1)
    await queue.nack(SHARD, (await _lease(queue, 1)).id, "a.0", [failure], RULE)
    for _ in range(2):
        await asyncio.sleep(0.005)
        await queue.tick(SHARD, 10)
        await _lease(queue, 1, ttl_ms=1)
        await asyncio.sleep(0.005)
        await queue.reap(SHARD, 10, RULE)
    dead = DeadRow("a.0", 0, "max_deliveries", "upstream_failed")
    assert await queue.dead(SHARD, 10) == [dead]
    assert [row for _, row in await queue.given_up(SHARD, 10)] == [dead]
    await queue.commit(SHARD, "", "a.0", [outcome(0, ok=False)], HOUR)
    assert await queue.dead(SHARD, 10) == []
    assert len(await queue.given_up(SHARD, 10)) == 1


async def test_a_holder_that_dies_with_a_used_up_row_gives_it_no_more_tries(
    queue: QueueClient,
) -> None:
    """Its tries were used up before: it is given up for its errors, not run again."""
    await queue.enqueue(SHARD, segment("a.0", 1))
    failure = RowFailure(0, TryKind.ERROR, "timeout", 1)
    await queue.nack(SHARD, (await _lease(queue, 1)).id, "a.0", [failure], RULE)
    await asyncio.sleep(0.005)
    await queue.tick(SHARD, 10)
    lease = await _lease(queue, 1, ttl_ms=1)
    assert (await queue.nack(SHARD, lease.id, "a.0", [failure], RULE)).exhausted == (0,)
    await asyncio.sleep(0.005)
    assert (await queue.reap(SHARD, 10, RULE)).dead == (("a.0", 0),)
    assert await queue.dead(SHARD, 10) == [DeadRow("a.0", 0, "max_tries", "timeout")]


async def test_given_up_rows_can_start_over(queue: QueueClient) -> None:
    """As long as their line is not written; with all their tries, once."""
    await queue.enqueue(SHARD, segment("a.0", 1))
    for _ in range(2):
        await _lease(queue, 1, ttl_ms=1)
        await asyncio.sleep(0.005)
        await queue.reap(SHARD, 10, RULE)
    assert await queue.lease(SHARD, "w", 1, 10**9, 5000) is None
    assert await queue.retry_dead(SHARD) == 1
    assert await queue.retry_dead(SHARD, "a.0") == 0
    assert await queue.dead(SHARD, 10) == []
    assert await queue.audit(SHARD) == []
    row = (await _lease(queue, 1)).runs[0].rows[0]
    assert (row.error_tries, row.crash_tries) == (0, 0)


async def test_after_a_purge_no_key_remains(queue: QueueClient, store: StoreClient) -> None:
    """I10: refused while it runs; then nothing in the server names the segment."""
    await queue.enqueue(SHARD, segment("a.0", 3))
    lease = await _lease(queue, 2)
    await queue.nack(SHARD, lease.id, "a.0", [RowFailure(0, TryKind.ERROR, "x")], RULE)
    with pytest.raises(Conflict):
        await queue.purge(SHARD, "a.0")
    await queue.cancel(SHARD, "a.0", 0)
    await asyncio.sleep(0.002)
    await queue.tick(SHARD, 10)
    with pytest.raises(Conflict):
        await queue.purge(SHARD, "a.0")
    claim = await queue.finish_claim(SHARD, "f", 5000)
    assert claim is not None
    assert await queue.finish_commit(SHARD, "a.0", claim.fence)
    assert await queue.purge(SHARD, "a.0")
    assert not await queue.purge(SHARD, "a.0")
    keys = await store.execute_command("KEYS", "*")
    assert not [key for key in keys if b"a.0" in key]
    for name, command in (("edf", "ZRANGE"), ("fin", "ZRANGE"), ("grace", "ZRANGE")):
        assert await store.execute_command(command, shard_key(SHARD, name), 0, -1) == []
    assert (await queue.stats(SHARD))["leases"] == 0
    assert await queue.audit(SHARD) == []


async def test_a_clock_that_leaps_expires_nothing(store: StoreClient) -> None:
    """More than 5 minutes ahead of what the caller's own clock says: until it is confirmed."""
    own = 1000.0
    queue = QueueClient(store, lambda: own)
    await queue.enqueue(SHARD, segment("a.0", 1, window_ms=300))
    assert (await queue.tick(SHARD, 10)).jump_ms == 0
    await asyncio.sleep(0.35)
    own -= 600
    ticked = await queue.tick(SHARD, 10)
    assert ticked.expired == 0
    assert 600_000 <= ticked.jump_ms < 601_000
    other = await QueueClient(store).tick(SHARD, 10)
    assert (other.expired, other.jump_ms) == (0, ticked.jump_ms)
    assert (await queue.stats(SHARD))["clock_jump_ms"] == ticked.jump_ms
    lease = await queue.lease(SHARD, "w", 9, 10**9, 5000)
    assert lease is not None
    assert lease.now_ms > lease.runs[0].deadline_ms
    assert await queue.confirm_clock(SHARD) == ticked.jump_ms
    assert (await queue.tick(SHARD, 10)).expired == 1
    assert await queue.confirm_clock(SHARD) == 0


async def test_a_quiet_time_is_no_leap(store: StoreClient) -> None:
    """Hours without a tick, seen by both clocks, expire what is due."""
    own = 1000.0
    queue = QueueClient(store, lambda: own)
    await queue.enqueue(SHARD, segment("a.0", 1, window_ms=300))
    await queue.tick(SHARD, 10)
    await asyncio.sleep(0.35)
    own += 7200
    ticked = await queue.tick(SHARD, 10)
    assert (ticked.expired, ticked.jump_ms) == (1, 0)
