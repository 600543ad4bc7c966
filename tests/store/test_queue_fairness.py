"""I9: tenants share by weight, in tokens of work really done."""

import asyncio
import random
from collections import Counter

import pytest

from gateway.core.usage import Usage
from gateway.core.work import Lease, PartRef, RowFailure, RowOutcome, TryKind, Turns
from gateway.store.client import StoreClient
from gateway.store.keys import shard_key
from gateway.store.queue import QueueClient, RetryRule
from tests.support.segments import HOUR, SHARD, held, segment

RULE = RetryRule(max_tries=1000, base_ms=0, cap_ms=0, max_crashes=1000)
QUANTUM = 16
LARGEST = 4000
WEIGHTS = {"a": 1, "b": 2, "c": 3, "d": 2}


@pytest.fixture
def queue(store: StoreClient) -> QueueClient:
    """A queue on an empty server."""
    return QueueClient(store)


async def _lease(queue: QueueClient, rows: int, ttl_ms: int = 60_000) -> Lease:
    lease = await queue.lease(SHARD, "w", rows, 10**9, ttl_ms, Turns(QUANTUM))
    assert lease is not None
    return lease


def _outcome(row: int, tokens: int) -> RowOutcome:
    return RowOutcome(row, PartRef(1, 0, 1), Usage(tokens - 1, 1), ok=True)


class Fleet:
    """Leases of random rows by several tenants; adds up what each was given, per weight."""

    def __init__(self, queue: QueueClient, seed: int) -> None:
        self.queue = queue
        self.rng = random.Random(seed)
        self.sizes: dict[str, list[int]] = {}
        self.done: Counter[str] = Counter()
        self.flying: list[Lease] = []

    async def join(self, tenant: str, rows: int = 3000) -> None:
        """``tenant`` comes with rows of 50 to 4,000 estimated tokens."""
        self.sizes[tenant] = [self.rng.randint(50, LARGEST) for _ in range(rows)]
        weight, tokens = WEIGHTS[tenant], self.sizes[tenant]
        spec = segment(f"{tenant}.0", rows, tenant=tenant, weight=weight, tokens=tokens)
        await self.queue.enqueue(SHARD, spec)

    async def step(self, in_flight: int) -> None:
        """One more lease; beyond ``in_flight`` the oldest is settled: mostly, not always, well."""
        self.flying.append(await _lease(self.queue, QUANTUM))
        while len(self.flying) > in_flight:
            lease = self.flying.pop(0)
            for run in lease.runs:
                rows = [row.index for row in run.rows]
                failed = [row for row in rows if self.rng.random() < 0.1]
                failures = [RowFailure(row, TryKind.ERROR, "x", 1) for row in failed]
                await self.queue.nack(SHARD, lease.id, run.segment, failures, RULE)
                await self._commit(lease, run.segment, [row for row in rows if row not in failed])
            await self.queue.tick(SHARD, 100)

    async def _commit(self, lease: Lease, name: str, rows: list[int]) -> None:
        tenant = name[0]
        kept = [row for row in rows if self.rng.random() < 0.95]
        results = [_outcome(row, self.rng.randint(50, LARGEST)) for row in kept]
        await self.queue.commit(SHARD, lease.id, name, results, HOUR)
        self.done[tenant] += sum(outcome.usage.prompt + 1 for outcome in results)
        await self.queue.release(SHARD, lease.id)

    def given(self, tenant: str) -> float:
        """Tokens of finished rows and estimates of rows in flight, per weight."""
        rows = [row for lease in self.flying for name, row in held(lease) if name[0] == tenant]
        leased = sum(self.sizes[tenant][row] for row in rows)
        return (self.done[tenant] + leased) / WEIGHTS[tenant]


@pytest.mark.parametrize("in_flight", [0, 3])
@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_backlogged_tenants_are_never_far_apart(
    queue: QueueClient, seed: int, in_flight: int
) -> None:
    """Random sizes, answers of other sizes than estimated, retries, and one who joins late.

    At every moment two tenants differ by at most a quantum of the largest rows, per weight; each
    lease in flight may turn out as much larger or smaller than its estimate.
    """
    fleet = Fleet(queue, seed)
    bound = QUANTUM * LARGEST * (1 + in_flight)
    for tenant in "abc":
        await fleet.join(tenant)
    start = dict.fromkeys("abc", 0.0)
    worst = 0.0
    for step in range(240):
        if step == 120:
            start |= {tenant: fleet.given(tenant) for tenant in "abc"} | {"d": 0.0}
            await fleet.join("d")
        await fleet.step(in_flight)
        given = [fleet.given(tenant) - start[tenant] for tenant in start]
        worst = max(worst, max(given) - min(given))
    assert 0 < worst <= bound
    assert await queue.audit(SHARD) == []


async def test_estimates_do_not_buy_anything(queue: QueueClient) -> None:
    """Who announces 40 times what it uses gets as many tokens as who announces the truth."""
    await queue.enqueue(SHARD, segment("a.0", 4000, tenant="a", tokens=4000))
    await queue.enqueue(SHARD, segment("b.0", 4000, tenant="b", tokens=100))
    done: Counter[str] = Counter()
    for _ in range(100):
        lease = await _lease(queue, QUANTUM)
        for run in lease.runs:
            results = [_outcome(row.index, 100) for row in run.rows]
            await queue.commit(SHARD, lease.id, run.segment, results, HOUR)
            done[run.tenant] += len(results)
    assert abs(done["a"] - done["b"]) <= QUANTUM


async def _charged(store: StoreClient, tenant: str) -> float:
    score = await store.execute_command("ZSCORE", shard_key(SHARD, "act"), tenant)
    return float(score)


async def test_only_what_is_leased_or_done_is_charged(
    queue: QueueClient, store: StoreClient
) -> None:
    """Estimates while rows are out, tokens once they are done, nothing for what came back."""
    await queue.enqueue(SHARD, segment("a.0", 100, tenant="a", weight=2, tokens=1000))
    lease = await _lease(queue, 6)
    assert await _charged(store, "a") == 3000
    await queue.commit(SHARD, lease.id, "a.0", [_outcome(0, 200), _outcome(1, 3000)], HOUR)
    assert await _charged(store, "a") == 2000 + 1600
    await queue.nack(SHARD, lease.id, "a.0", [RowFailure(2, TryKind.ERROR, "x", 60_000)], RULE)
    assert await _charged(store, "a") == 1500 + 1600
    await queue.release(SHARD, lease.id, {"a.0": [3]})
    assert await _charged(store, "a") == 1000 + 1600
    await store.execute_command("ZADD", shard_key(SHARD, "exp"), "XX", 1, lease.id)
    await queue.reap(SHARD, 10, RULE)
    assert await _charged(store, "a") == 1600


async def test_a_row_is_charged_once_whoever_delivers_it(
    queue: QueueClient, store: StoreClient
) -> None:
    """Late, repeated and unexpected results: each row costs its tokens, exactly once."""
    await queue.enqueue(SHARD, segment("a.0", 100, tenant="a", tokens=1000))
    old = await _lease(queue, 2, ttl_ms=1)
    await asyncio.sleep(0.005)
    await queue.reap(SHARD, 10, RULE)
    await queue.commit(SHARD, old.id, "a.0", [_outcome(0, 300)], HOUR)
    assert await _charged(store, "a") == 300
    new = await _lease(queue, 1)
    assert held(new) == [("a.0", 1)]
    assert await _charged(store, "a") == 1300
    await queue.commit(SHARD, old.id, "a.0", [_outcome(1, 500)], HOUR)
    assert await _charged(store, "a") == 800
    await queue.commit(SHARD, new.id, "a.0", [_outcome(1, 700)], HOUR)
    await queue.release(SHARD, new.id)
    assert await _charged(store, "a") == 800


async def test_a_late_tenant_starts_beside_the_others(
    queue: QueueClient, store: StoreClient
) -> None:
    """Not at 0, which would be a burst, and not at what was charged and refunded meanwhile."""
    await queue.enqueue(SHARD, segment("a.0", 100, tenant="a", tokens=1000))
    lease = await _lease(queue, 10)
    await queue.commit(SHARD, lease.id, "a.0", [_outcome(row, 100) for row in range(10)], HOUR)
    await queue.enqueue(SHARD, segment("b.0", 100, tenant="b", tokens=1000))
    assert await _charged(store, "a") == await _charged(store, "b") == 1000


async def test_a_tenant_without_ready_rows_rests(queue: QueueClient, store: StoreClient) -> None:
    """It does not stay among the active ones, where newcomers start."""
    await queue.enqueue(SHARD, segment("a.0", 2, tenant="a"))
    await _lease(queue, 2)
    assert await store.execute_command("ZCARD", shard_key(SHARD, "act")) == 0
    await queue.enqueue(SHARD, segment("b.0", 2, tenant="b"))
    await queue.cancel(SHARD, "b.0", 1000)
    assert await store.execute_command("ZCARD", shard_key(SHARD, "act")) == 0


async def test_a_turn_takes_from_several_segments(queue: QueueClient) -> None:
    """Jobs of one row are handed out a quantum at a time, the first deadlines first."""
    for number in range(40):
        for tenant in "ab":
            spec = segment(
                f"{tenant}{number}.0", 1, tenant=tenant, window_ms=10**7 - 10_000 * number
            )
            await queue.enqueue(SHARD, spec)
    lease = await _lease(queue, 2 * QUANTUM)
    last = range(39, 39 - QUANTUM, -1)
    assert [run.segment for run in lease.runs] == [f"{t}{n}.0" for t in "ab" for n in last]
    rest = held(await _lease(queue, 64))
    assert len(rest) == 48
    assert len({*rest, *held(lease)}) == 80
    assert await queue.audit(SHARD) == []


async def test_a_turn_that_a_budget_ends(queue: QueueClient, store: StoreClient) -> None:
    """What no longer fits stays, whole or in part, and is charged when it is handed out."""
    sizes = {"a.0": 1, "b.0": 3, "c.0": 1}
    for number, (name, rows) in enumerate(sizes.items()):
        await queue.enqueue(SHARD, segment(name, rows, window_ms=10**6 + 10_000 * number))
    first = await queue.lease(SHARD, "w", 16, 250, 60_000, Turns(QUANTUM))
    assert first is not None
    assert held(first) == [("a.0", 0), ("b.0", 0)]
    assert await _charged(store, "t") == 200
    assert await queue.audit(SHARD) == []
    assert held(await _lease(queue, 16)) == [("b.0", 1), ("b.0", 2), ("c.0", 0)]
    assert float(await store.execute_command("HGET", shard_key(SHARD, "tn:t"), "vt")) == 500


async def test_retries_and_done_rows_among_fresh_segments(queue: QueueClient) -> None:
    """In one turn each segment gives what it has: a retry, rows that are not done, fresh ones."""
    for number, (name, rows) in enumerate({"a.0": 2, "b.0": 3, "c.0": 1}.items()):
        await queue.enqueue(SHARD, segment(name, rows, window_ms=10**6 + 10_000 * number))
    lease = await _lease(queue, 1)
    await queue.release(SHARD, lease.id)
    await queue.commit(SHARD, "", "b.0", [_outcome(0, 100)], HOUR)
    given = held(await _lease(queue, 16))
    assert given == [("a.0", 0), ("a.0", 1), ("b.0", 1), ("b.0", 2), ("c.0", 0)]
    assert await queue.audit(SHARD) == []
