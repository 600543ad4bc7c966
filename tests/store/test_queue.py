"""Leasing: what is handed out, to whom, in which order."""

import asyncio
from collections import Counter

import pytest

from gateway.core.work import RowFailure, SegmentStatus, TryKind, Turns
from gateway.store.client import StoreClient
from gateway.store.keys import shard_key
from gateway.store.queue import QueueClient, RetryRule
from gateway.store.scripts import run_script
from tests.support.segments import HOUR, SHARD, held, outcome, segment

RULE = RetryRule(max_tries=5, base_ms=1, cap_ms=1)


@pytest.fixture
def queue(store: StoreClient) -> QueueClient:
    """A queue on an empty server."""
    return QueueClient(store)


async def test_a_segment_is_added_once(queue: QueueClient) -> None:
    """Sending an enqueue again changes nothing."""
    assert await queue.enqueue(SHARD, segment("a.0", 5))
    assert not await queue.enqueue(SHARD, segment("a.0", 5))
    lease = await queue.lease(SHARD, "w", 64, 10**9, 5000)
    assert lease is not None
    assert held(lease) == [("a.0", row) for row in range(5)]
    assert await queue.lease(SHARD, "w", 64, 10**9, 5000) is None


async def test_a_lease_carries_what_the_dispatcher_needs(queue: QueueClient) -> None:
    """Job, tenant, model, endpoint and blob names come with the rows."""
    await queue.enqueue(SHARD, segment("a.0", 1))
    lease = await queue.lease(SHARD, "w", 64, 10**9, 5000)
    assert lease is not None
    run = lease.runs[0]
    assert (run.job, run.tenant, run.model, run.endpoint) == ("a", "t", "m", "/v1/chat/completions")
    assert (run.input_ref, run.index_ref) == ("files/in/data", "jobs/j/index-0")


async def test_a_lease_stays_in_its_token_budget(queue: QueueClient) -> None:
    """Rows are added while they fit; a row that is too large for any budget goes alone."""
    await queue.enqueue(SHARD, segment("a.0", 4, tokens=[400, 400, 400, 5000]))
    sizes = []
    while lease := await queue.lease(SHARD, "w", 64, 1000, 5000):
        sizes.append(lease.rows)
    assert sizes == [2, 1, 1]


async def test_the_earliest_deadline_of_a_tenant_goes_first(queue: QueueClient) -> None:
    """Order of arrival does not matter inside a tenant."""
    await queue.enqueue(SHARD, segment("late.0", 2, window_ms=90_000_000))
    await queue.enqueue(SHARD, segment("soon.0", 2, window_ms=4_000_000))
    lease = await queue.lease(SHARD, "w", 2, 10**9, 5000)
    assert lease is not None
    assert {name for name, _ in held(lease)} == {"soon.0"}


async def test_nothing_is_handed_out_past_its_deadline(queue: QueueClient) -> None:
    """It expires, though nobody looked at the time; other segments are leased beside it."""
    for number in range(70):
        await queue.enqueue(SHARD, segment(f"late{number}.0", 2, window_ms=1))
    await queue.enqueue(SHARD, segment("soon.0", 2))
    await asyncio.sleep(0.01)
    lease = await queue.lease(SHARD, "w", 64, 10**9, 5000)
    assert lease is not None
    assert held(lease) == [("soon.0", 0), ("soon.0", 1)]
    assert 0 < lease.runs[0].deadline_ms - lease.now_ms <= 3_600_000
    for number in (0, 69):
        view = await queue.segment(SHARD, f"late{number}.0")
        assert view is not None
        assert (view.status, view.closing) == (SegmentStatus.FINALIZING, SegmentStatus.EXPIRED)
    assert await queue.audit(SHARD) == []


async def test_tenants_share_by_weight(queue: QueueClient) -> None:
    """Weights 1:2:3 give shares 1:2:3 while all have work (QUE-15 is the small case of it)."""
    for weight, tenant in enumerate(("a", "b", "c"), start=1):
        await queue.enqueue(SHARD, segment(f"{tenant}.0", 3000, tenant=tenant, weight=weight))
    served: Counter[str] = Counter()
    for _ in range(60):
        lease = await queue.lease(SHARD, "w", 48, 10**9, 60_000)
        assert lease is not None
        served.update(name[0] for name, _ in held(lease))
    total = served.total()
    assert [round(served[t] / total, 1) for t in "abc"] == [0.2, 0.3, 0.5]


async def test_a_late_tenant_neither_waits_nor_makes_up(queue: QueueClient) -> None:
    """A tenant that joins late is served at once, and only its share from then on."""
    await queue.enqueue(SHARD, segment("a.0", 2000, tenant="a"))
    for _ in range(10):
        await queue.lease(SHARD, "w", 64, 10**9, 60_000)
    await queue.enqueue(SHARD, segment("b.0", 1000, tenant="b"))
    served: Counter[str] = Counter()
    for _ in range(5):
        lease = await queue.lease(SHARD, "w", 64, 10**9, 60_000)
        assert lease is not None
        served.update(name[0] for name, _ in held(lease))
    assert abs(served["a"] - served["b"]) <= 32


async def test_a_segment_with_only_a_later_retry_is_not_lost(queue: QueueClient) -> None:
    """It leaves the queue, does not make the lease spin, and comes back when it is due."""
    await queue.enqueue(SHARD, segment("a.0", 1))
    lease = await queue.lease(SHARD, "w", 1, 10**9, 60_000)
    assert lease is not None
    failure = RowFailure(0, TryKind.THROTTLE, "upstream_throttled", retry_after_ms=400)
    await queue.nack(SHARD, lease.id, "a.0", [failure], RULE)
    assert await queue.lease(SHARD, "w", 1, 10**9, 60_000) is None
    assert await queue.audit(SHARD) == []
    await asyncio.sleep(0.45)
    assert (await queue.tick(SHARD, 10)).promoted == 1
    again = await queue.lease(SHARD, "w", 1, 10**9, 60_000)
    assert again is not None
    assert again.runs[0].rows[0].error_tries == 1


async def test_a_delayed_segment_waits_for_its_time(queue: QueueClient) -> None:
    """QUE-06: nothing of it is leased before; the tick after it brings all rows, once."""
    await queue.enqueue(SHARD, segment("a.0", 2, delay_ms=400))
    assert await queue.lease(SHARD, "w", 4, 10**9, 60_000) is None
    assert (await queue.tick(SHARD, 10)).promoted == 0
    assert await queue.audit(SHARD) == []
    assert (await queue.stats(SHARD))["later"] == 1
    await asyncio.sleep(0.45)
    assert (await queue.tick(SHARD, 10)).promoted == 1
    lease = await queue.lease(SHARD, "w", 4, 10**9, 60_000)
    assert lease is not None
    assert held(lease) == [("a.0", 0), ("a.0", 1)]
    assert (await queue.tick(SHARD, 10)).promoted == 0


async def _rescued(queue: QueueClient, rate: float, slack_ms: int) -> list[str]:
    """Tenants in the order of 8 leases of 4 rows."""
    order = []
    for _ in range(8):
        lease = await queue.lease(SHARD, "w", 4, 10**9, 60_000, Turns(4, rate, slack_ms))
        assert lease is not None
        assert len(lease.runs) == 1
        order.append(lease.runs[0].tenant)
    return order


async def test_what_would_be_late_goes_first(queue: QueueClient, store: StoreClient) -> None:
    """Three leases of four go to the deadline at risk; its tenant is charged all the same."""
    await queue.enqueue(SHARD, segment("a.0", 100, tenant="a"))
    await queue.enqueue(SHARD, segment("b.0", 100, tenant="b", window_ms=3_000_000))
    # 10,000 tokens at 4 a second are 2,500 s: 500 s are left
    order = await _rescued(queue, 4.0, 600_000)
    assert order.count("b") == 6
    assert order.count("a") == 2
    vt = await store.execute_command("ZSCORE", shard_key(SHARD, "act"), "b")
    assert float(vt) == 2400
    # and from here on the other one has its turn until they are even
    assert await _rescued(queue, 4.0, 0) == ["a"] * 4 + ["a", "b", "a", "b"]


@pytest.mark.parametrize(
    ("rate", "slack_ms", "rescued"),
    [
        (4.0, 400_000, False),  # there is time enough
        (0.0, 600_000, False),  # the rate is unknown and the deadline is far
        (0.0, 3_100_000, True),  # unknown, and near
        (1.0, 600_000, False),  # 10,000 s of work in 3,000: hopeless
        (2.5, 1, True),  # 4,000 s of work: much of it can be done
    ],
)
async def test_when_a_deadline_is_at_risk(
    queue: QueueClient, rate: float, slack_ms: int, rescued: bool
) -> None:
    """Time left, less the work at the measured rate, is below the slack, and not hopeless."""
    await queue.enqueue(SHARD, segment("a.0", 100, tenant="a"))
    await queue.enqueue(SHARD, segment("b.0", 100, tenant="b", window_ms=3_000_000))
    assert (await _rescued(queue, rate, slack_ms)).count("b") == (6 if rescued else 4)


async def test_a_rescue_looks_past_what_has_nothing_to_hand_out(queue: QueueClient) -> None:
    """A first deadline whose rows are all out does not hide the second."""
    await queue.enqueue(SHARD, segment("c.0", 4, tenant="c", window_ms=2_000_000))
    await queue.lease(SHARD, "w", 4, 10**9, 60_000)
    await queue.enqueue(SHARD, segment("a.0", 100, tenant="a"))
    await queue.enqueue(SHARD, segment("b.0", 100, tenant="b", window_ms=3_000_000))
    assert (await _rescued(queue, 0.0, 3_100_000)).count("b") >= 6


async def test_an_extended_lease_is_kept(queue: QueueClient) -> None:
    """QUE-02: work longer than the lease stays where it is while it is extended."""
    await queue.enqueue(SHARD, segment("a.0", 2))
    lease = await queue.lease(SHARD, "w", 2, 10**9, 500)
    assert lease is not None
    for _ in range(6):
        await asyncio.sleep(0.1)
        answer = await queue.extend(SHARD, "w", 500, [lease.id, "77"])
        assert (set(answer.alive), answer.gone) == ({lease.id}, ("77",))
        assert (await queue.reap(SHARD, 10, RULE)).leases == 0


async def test_an_extend_names_segments_that_must_stop(queue: QueueClient) -> None:
    """A cancel reaches the dispatcher with the next extend."""
    await queue.enqueue(SHARD, segment("a.0", 2))
    lease = await queue.lease(SHARD, "w", 2, 10**9, 5000)
    assert lease is not None
    assert (await queue.extend(SHARD, "w", 5000, [lease.id])).stopped == ()
    await queue.cancel(SHARD, "a.0", 5000)
    assert (await queue.extend(SHARD, "w", 5000, [lease.id])).stopped == ("a.0",)


async def test_another_worker_cannot_extend_a_lease(queue: QueueClient) -> None:
    """A lease belongs to who took it."""
    await queue.enqueue(SHARD, segment("a.0", 1))
    lease = await queue.lease(SHARD, "w", 1, 10**9, 5000)
    assert lease is not None
    assert (await queue.extend(SHARD, "other", 5000, [lease.id])).gone == (lease.id,)


async def test_waiting_ends_when_work_comes(queue: QueueClient) -> None:
    """A waiting dispatcher is woken, it does not poll."""
    async with asyncio.timeout(2):
        waiting = asyncio.create_task(queue.wait([SHARD], 30))
        await asyncio.sleep(0.02)
        assert not waiting.done()
        await queue.enqueue(SHARD, segment("a.0", 1))
        await waiting


async def test_two_dispatchers_never_hold_the_same_row(queue: QueueClient) -> None:
    """BAT-26: every row is handed out exactly once while leases live."""
    await queue.enqueue(SHARD, segment("a.0", 500))

    async def take(worker: str) -> list[tuple[str, int]]:
        rows: list[tuple[str, int]] = []
        while lease := await queue.lease(SHARD, worker, 7, 10**9, 60_000):
            rows += held(lease)
        return rows

    taken = [row for rows in await asyncio.gather(take("w1"), take("w2")) for row in rows]
    assert Counter(taken) == Counter({("a.0", row): 1 for row in range(500)})


async def test_a_finished_row_is_never_leased_again(queue: QueueClient) -> None:
    """QUE-10: done stays done, whatever happens to the lease."""
    await queue.enqueue(SHARD, segment("a.0", 4))
    lease = await queue.lease(SHARD, "w", 4, 10**9, 1)
    assert lease is not None
    await queue.commit(SHARD, lease.id, "a.0", [outcome(1), outcome(2)], HOUR)
    await asyncio.sleep(0.01)
    await queue.reap(SHARD, 10, RULE)
    rows = set()
    while again := await queue.lease(SHARD, "w", 4, 10**9, 5000):
        rows |= {row for _, row in held(again)}
    assert rows == {0, 3}


async def test_a_lease_that_is_sent_again(queue: QueueClient, store: StoreClient) -> None:
    """Its reply was lost: what the first one took comes back when it runs out, nothing is lost."""
    await queue.enqueue(SHARD, segment("a.0", 4))
    for _ in range(2):
        values = await run_script(store, "lease", SHARD, "w", 2, 1000, 30, 16, "0", 0, "same-id")
    known = values[0].decode()
    await queue.commit(SHARD, known, "a.0", [outcome(2), outcome(3)], HOUR)
    assert await queue.audit(SHARD) == []
    await asyncio.sleep(0.04)
    assert (await queue.reap(SHARD, 10, RULE)).returned == 2
    rows: set[tuple[str, int]] = set()
    while lease := await queue.lease(SHARD, "w", 4, 10**9, 5000):
        rows |= set(held(lease))
    assert rows == {("a.0", 0), ("a.0", 1)}
