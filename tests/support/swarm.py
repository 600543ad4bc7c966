"""Simulated dispatchers on the real scripts, with every accident that a dispatcher can have.

They die with rows in hand, sleep past their lease, send a commit again because its answer was
lost, give rows back. What is judged is what they were told and what the queue delivers in the
end, never the queue's own counters.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from random import Random

from gateway.core.work import Lease, Quota, RowFailure, RowOutcome, TryKind
from gateway.store.client import StoreClient
from gateway.store.queue import QueueClient, RetryRule
from tests.support.repeating import RepeatingQueue
from tests.support.segments import HOUR, SHARD, held, segment
from tests.support.swarm_history import Row, SwarmHistory

_SIZES = {"a.0": 110, "b.0": 70, "c.0": 50, "gone.0": 120}
_CANCELLED = "gone.0"
_CANCEL_AFTER = 30
_QUIET = "q.0"
_NAME = "w"
_TTL_MS = 80
_NEVER_MS = 600_000
_PATIENCE = 1.5
_LATER_MS = 400
#: Nothing dies here of crashes or errors: what is missing at the end was lost.
_RULE = RetryRule(max_tries=10_000, base_ms=20, cap_ms=40, max_crashes=10_000)

Fate = Callable[[Lease], Awaitable[None]]


class Swarm:
    """One run. ``seed`` decides what happens to whom; the interleaving is the machine's."""

    def __init__(self, store: StoreClient, seed: int, workers: int = 6) -> None:
        self._queue = QueueClient(store)
        self._lossy = RepeatingQueue(store, seed)
        self._chance = Random(seed)
        self._workers = workers
        self._past: list[tuple[str, str, list[RowOutcome]]] = []
        self._over = asyncio.Event()
        self.history = SwarmHistory()

    async def run(self) -> list[str]:
        """Violations of what must hold; empty when the scripts are sound."""
        new = [
            (segment(name, rows, tenant="t" if name < "c" else "u"), Quota())
            for name, rows in _SIZES.items()
        ]
        await self._queue.enqueue_all(SHARD, [*new, *new])
        async with asyncio.TaskGroup() as tasks:
            for _ in range(self._workers):
                tasks.create_task(self._work())
            tasks.create_task(self._keep())
            tasks.create_task(self._finish())
            tasks.create_task(self._cancel())
            tasks.create_task(self._wait_for_retries())
            await self._until_still()
            self._over.set()
        await self._compare_meter()
        return self.history.violations

    async def _until_still(self) -> None:
        """Return when all is published, something is wrong, or nothing moves any more."""
        history = self.history
        seen, since = -1, time.monotonic()
        while not history.violations and len(history.published) < len(_SIZES):
            await asyncio.sleep(0.02)
            if (now := history.progress()) != seen:
                seen, since = now, time.monotonic()
            elif time.monotonic() - since > _PATIENCE:
                missing = sorted(_SIZES.keys() - history.published)
                history.wrong(f"lost: nothing moves and {missing} did not end")

    async def _work(self) -> None:
        fates: list[Fate] = [
            self._finishes,
            self._finishes,
            self._dies,
            self._dies_half_way,
            self._hears_nothing,
            self._sleeps,
            self._keeps_on,
            self._gives_back,
            self._is_overtaken,
        ]
        while not self._over.is_set():
            before = self.history.before_lease()
            rows = self._chance.randint(1, 12)
            lease = await self._lossy.lease(SHARD, _NAME, rows, 10**9, _TTL_MS)
            if lease is None:
                await asyncio.sleep(0.01)
                continue
            self.history.leased(lease, before)
            await self._chance.choice(fates)(lease)
            if self._past and self._chance.random() < 0.2:
                await self._commit(*self._chance.choice(self._past))

    async def _finishes(self, lease: Lease) -> None:
        for run in lease.runs:
            await self._deliver(lease, run.segment, [row.index for row in run.rows])

    async def _dies(self, lease: Lease) -> None:
        """Between the answer of the lease and its first use."""

    async def _dies_half_way(self, lease: Lease) -> None:
        for run in lease.runs:
            rows = [row.index for row in run.rows]
            await self._deliver(lease, run.segment, rows[: len(rows) // 2])

    async def _hears_nothing(self, lease: Lease) -> None:
        """The answers are lost: the group is sent again, the second time with more rows in it."""
        run = lease.runs[0]
        outcomes = [
            self.history.outcome((run.segment, row.index), self._chance) for row in run.rows
        ]
        half = outcomes[: (len(outcomes) + 1) // 2]
        for group in (half, half, outcomes[: len(half) + 1]):
            await self._commit(lease.id, run.segment, group)
        if self._chance.random() < 0.5:
            await self._commit(lease.id, run.segment, outcomes)

    async def _sleeps(self, lease: Lease) -> None:
        """Frozen past the lease, then it delivers what others have taken over."""
        await asyncio.sleep(self._chance.uniform(1, 2) * _TTL_MS / 1000)
        await self._finishes(lease)

    async def _keeps_on(self, lease: Lease) -> None:
        """Works longer than the lease and extends it meanwhile."""
        for _ in range(3):
            await asyncio.sleep(_TTL_MS / 3000)
            asked = time.monotonic()
            answer = await self._lossy.extend(SHARD, _NAME, _TTL_MS, [lease.id])
            self.history.extended(lease, asked, alive=lease.id in answer.alive)
        await self._finishes(lease)

    async def _gives_back(self, lease: Lease) -> None:
        """Some rows failed, some are done, the rest is released, all of it after a while."""
        await asyncio.sleep(self._chance.uniform(0, 0.5) * _TTL_MS / 1000)
        for run in lease.runs:
            rows = [row.index for row in run.rows]
            self._chance.shuffle(rows)
            cut, end = sorted(self._chance.choices(range(len(rows) + 1), k=2))
            failures = [
                RowFailure(
                    row, TryKind(self._chance.randint(0, 2)), "x", self._chance.choice((0, 30))
                )
                for row in rows[:cut]
            ]
            self.history.given_back((run.segment, row) for row in rows[:cut])
            await self._lossy.nack(SHARD, lease.id, run.segment, failures, _RULE)
            await self._deliver(lease, run.segment, sorted(rows[cut:end]))
        self.history.given_back(held(lease))
        await self._lossy.release(SHARD, lease.id)

    async def _is_overtaken(self, lease: Lease) -> None:
        """A result that was taken for lost comes in for a row that it holds, which it gives up."""
        run = lease.runs[0]
        row = run.rows[0].index
        late = self.history.outcome((run.segment, row), self._chance)
        await self._commit("", run.segment, [late])
        self.history.given_back(held(lease))
        way = self._chance.randrange(3)
        if way == 0:
            await self._lossy.release(SHARD, lease.id)
        elif way == 1:
            failure = RowFailure(row, TryKind.ERROR, "x", 1)
            await self._lossy.nack(SHARD, lease.id, run.segment, [failure], _RULE)

    async def _deliver(self, lease: Lease, name: str, rows: list[int]) -> None:
        outcomes = [self.history.outcome((name, row), self._chance) for row in rows]
        if outcomes:
            await self._commit(lease.id, name, outcomes)

    async def _commit(self, lease_id: str, name: str, outcomes: list[RowOutcome]) -> None:
        self._past.append((lease_id, name, outcomes))
        rows: list[Row] = [(name, outcome.index) for outcome in outcomes]
        safe = self.history.committing(rows)
        answer = await self._queue.commit(SHARD, lease_id, name, outcomes, HOUR)
        self.history.committed(rows, answer, safe)

    async def _keep(self) -> None:
        """What a dispatcher's reaper does."""
        while not self._over.is_set():
            await asyncio.sleep(0.02)
            await self._lossy.reap(SHARD, 100, _RULE)
            await self._lossy.tick(SHARD, 100)

    async def _cancel(self) -> None:
        """Cancel a segment with rows of it in hand: in the grace they may still be delivered."""
        while not self._over.is_set():
            await asyncio.sleep(0.002)
            if self.history.acknowledged_of(_CANCELLED) < _CANCEL_AFTER:
                continue
            before = self.history.before_lease()
            lease = await self._queue.lease(SHARD, _NAME, 8, 10**9, _NEVER_MS)
            if lease is None:
                continue
            self.history.leased(lease, before)
            for run in lease.runs:
                rows = [row.index for row in run.rows]
                if run.segment == _CANCELLED and len(rows) > 2:
                    await self._cancel_holding(lease.id, rows)
                    return
            await self._finishes(lease)

    async def _cancel_holding(self, lease_id: str, rows: list[int]) -> None:
        """The last row comes when nobody else has any more."""
        outcomes = [self.history.outcome((_CANCELLED, row), self._chance) for row in rows]
        for size in range(1, len(rows)):
            await self._commit(lease_id, _CANCELLED, outcomes[:size])
        await self._queue.cancel(SHARD, _CANCELLED, _NEVER_MS)
        await asyncio.sleep(4 * _TTL_MS / 1000)
        await self._commit(lease_id, _CANCELLED, outcomes)

    async def _wait_for_retries(self) -> None:
        """Alone in a shard: the last row waits while another that was given back goes first."""
        await self._queue.enqueue(_QUIET, segment("q.0", 2))
        lease = await self._queue.lease(_QUIET, _NAME, 2, 10**9, _NEVER_MS)
        if lease is None:
            self.history.wrong("lost: a fresh segment cannot be leased")
            return
        for row, kind, wait in ((0, TryKind.THROTTLE, _LATER_MS), (1, TryKind.CRASH, 0)):
            failure = RowFailure(row, kind, "x", wait)
            await self._queue.nack(_QUIET, lease.id, "q.0", [failure], _RULE)
        for row in (1, 0, 0):
            again = await self._retry()
            if again is None or held(again) != [("q.0", row)]:
                self.history.wrong(f"lost: row {row} of a quiet segment did not come back")
                return
            if row == 0:
                failure = RowFailure(row, TryKind.THROTTLE, "x", 30)
                await self._queue.nack(_QUIET, again.id, "q.0", [failure], _RULE)

    async def _retry(self) -> Lease | None:
        """The next lease of the quiet shard; None when there is none for a while."""
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            lease = await self._queue.lease(_QUIET, _NAME, 2, 10**9, _NEVER_MS)
            if lease is not None:
                return lease
            await asyncio.sleep(0.01)
            await self._queue.tick(_QUIET, 100)
        return None

    async def _finish(self) -> None:
        """Finalise each closed segment, the first time too slowly: another took the claim over."""
        slow: dict[str, int] = {}
        while not self._over.is_set():
            first = await self._queue.finish_claim(SHARD, "slow", 1)
            if first is not None:
                slow[first.segment] = first.fence
                await asyncio.sleep(0.005)
                claim = await self._queue.finish_claim(SHARD, "quick", _NEVER_MS)
                assert claim is not None
                await self._publish(claim.segment, claim.fence, slow.get(claim.segment))
            await asyncio.sleep(0.01)

    async def _publish(self, name: str, fence: int, old: int | None) -> None:
        done, refs = await self._queue.refs(SHARD, name)
        good = await self._queue.good(SHARD, name)
        self.history.read(name, _SIZES[name], (done, refs, good), whole=name != _CANCELLED)
        if old is not None and await self._queue.finish_commit(SHARD, name, old):
            self.history.wrong(f"{name}: finished under fence {old} after {fence} was given out")
        if not await self._queue.finish_commit(SHARD, name, fence):
            self.history.wrong(f"{name}: not finished under its newest fence")
        if await self._queue.finish_commit(SHARD, name, fence):
            self.history.wrong(f"{name}: finished twice")
        self.history.published.add(name)

    async def _compare_meter(self) -> None:
        for text in await self._queue.audit(SHARD):
            self.history.wrong(f"audit: {text}")
        if self.history.violations:
            return
        for tenant, names in (("t", ("a.0", "b.0")), ("u", ("c.0", _CANCELLED))):
            metered = (await self._queue.meter(SHARD, tenant, [HOUR])).get("m", {})
            expected = self.history.bill(names)
            if metered != expected:
                self.history.wrong(f"meter of {tenant}: {metered}, delivered: {expected}")
