"""The dispatcher's flow: lease, assemble, run, settle."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from gateway.batches.rows import RowSource
from gateway.core.errors import Unavailable
from gateway.core.work import Lease, Turns
from gateway.dispatch.assemble import assemble, release_map
from gateway.dispatch.held import HeldRow, Holdings
from gateway.dispatch.run import unusable
from gateway.dispatch.settle import Settlement, Settler
from gateway.store.queue import QueueClient

log = logging.getLogger(__name__)

_IDLE_SECONDS = 1.0
_DRAIN_SECONDS = 1.0
_SETTLE_SECONDS = 1.0
_LEASE_PAUSE = 0.5
_MOST_UNSETTLED = 2048


@dataclass(frozen=True, slots=True)
class LeaseLimits:
    """What one lease may hold, and for whom.

    ``worker`` names this process; ``quantum`` rows go to one tenant before the next, but first
    goes what would have less than ``slack_ms`` to its deadline.
    """

    worker: str
    rows: int
    tokens: int
    ttl_ms: int
    quantum: int
    slack_ms: int = 0


class RowPool(Protocol):
    """Where leased rows run. ``changed`` is set when ``wants`` may have risen."""

    changed: asyncio.Event

    def wants(self) -> int:
        """Rows worth leasing now."""

    async def take(self, rows: Sequence[HeldRow]) -> None:
        """Take rows of a lease and start what may start."""

    def drop(self, row: HeldRow) -> bool:
        """Stop a row. False: its result is on the way already."""

    def close(self) -> None:
        """Start nothing any more."""

    async def idle(self) -> None:
        """Wait until no row runs."""


class Dispatcher:
    """Keeps the pools filled. ``pools`` maps the shards it serves to the pool of their target."""

    def __init__(
        self,
        queue: QueueClient,
        source: RowSource,
        holdings: Holdings,
        settler: Settler,
        pools: Mapping[str, RowPool],
        limits: LeaseLimits,
    ) -> None:
        self._queue = queue
        self._source = source
        self._holdings = holdings
        self._settler = settler
        self._pools = pools
        self._limits = limits
        self._stopping = asyncio.Event()

    async def run(self) -> None:
        """Fill every pool until ``stop``; each pool has a loop of its own."""
        shards: dict[RowPool, list[str]] = {}
        for shard, pool in self._pools.items():
            shards.setdefault(pool, []).append(shard)
        async with asyncio.TaskGroup() as tasks:
            for pool, served in shards.items():
                tasks.create_task(self._fill(pool, served))

    def give_up(self) -> None:
        """Lease nothing any more; what is held runs out."""
        self._stopping.set()

    async def stop(self) -> None:
        """Stop leasing, let running rows finish for a second, give everything else back."""
        self._stopping.set()
        for pool in self._pools.values():
            pool.close()
            pool.changed.set()
        await _within(_DRAIN_SECONDS, self._idle())
        for row in self._holdings.rows():
            if not row.ended and row.task is not None:
                row.dropped = True
                row.task.cancel()
        leases = [
            (lease.shard, lease.id, release_map(lease))
            for leases in self._holdings.by_shard().values()
            for lease in leases
        ]
        await _within(_SETTLE_SECONDS, self._idle())
        await _within(_SETTLE_SECONDS, self._settler.drained())
        await _within(_SETTLE_SECONDS, self._release_all(leases))

    async def abort(self, rows: Sequence[HeldRow]) -> None:
        """Stop rows that must not go on, and release them: their segment need not wait."""
        leases: dict[tuple[str, str], dict[str, list[int]]] = {}
        for row in rows:
            if not self._pools[row.lease.shard].drop(row):
                continue
            self._holdings.settled(row)
            released = leases.setdefault((row.lease.shard, row.lease.id), {})
            released.setdefault(row.run.segment, []).append(row.row.index)
        await self._release_all([(shard, lease, left) for (shard, lease), left in leases.items()])

    async def _fill(self, pool: RowPool, shards: Sequence[str]) -> None:
        while not self._stopping.is_set():
            wanted = pool.wants()
            if not wanted:
                pool.changed.clear()
                await _within(_IDLE_SECONDS, pool.changed.wait())
                continue
            try:
                if not await self._lease_some(pool, shards, wanted):
                    await self._queue.wait(shards, _IDLE_SECONDS * random.uniform(0.8, 1.2))  # noqa: S311
            except Unavailable as error:
                log.warning("no rows can be leased: %s", error.message)
                await asyncio.sleep(_LEASE_PAUSE)
            except Exception:
                log.exception("no rows can be leased")
                await asyncio.sleep(_LEASE_PAUSE)

    async def _lease_some(self, pool: RowPool, shards: Sequence[str], wanted: int) -> bool:
        """Lease from each shard in turn; False when none had anything."""
        found = False
        for shard in shards:
            rows = min(wanted, self._limits.rows)
            asked = self._holdings.now()
            lease = await self._queue.lease(
                shard,
                self._limits.worker,
                rows,
                self._limits.tokens,
                self._limits.ttl_ms,
                Turns(self._limits.quantum, self._settler.speed.rate(shard), self._limits.slack_ms),
            )
            if lease is not None:
                found = True
                await self._take(pool, lease, asked)
                wanted = pool.wants()
                if not wanted:
                    break
        return found

    async def _take(self, pool: RowPool, lease: Lease, asked: float) -> None:
        found = await assemble(lease, self._source, self._holdings, asked)
        if not self._stopping.is_set():
            await pool.take(await self._usable(found.rows))
        if found.unread:
            await self._queue.release(lease.shard, lease.id, found.unread)
            await asyncio.sleep(_LEASE_PAUSE)

    async def _usable(self, rows: Sequence[HeldRow]) -> list[HeldRow]:
        """Those of ``rows`` that can be sent; the others end here, as fast as the settler goes."""
        usable = []
        for row in rows:
            result = unusable(row)
            if result is None:
                usable.append(row)
                continue
            while self._settler.pending > _MOST_UNSETTLED:  # noqa: ASYNC110 - at its own pace
                await asyncio.sleep(0.01)
            row.ended = True
            self._settler.put(Settlement.of(row, result))
        return usable

    async def _idle(self) -> None:
        await asyncio.gather(*(pool.idle() for pool in set(self._pools.values())))

    async def _release_all(
        self, leases: Sequence[tuple[str, str, Mapping[str, Sequence[int]]]]
    ) -> None:
        for shard, lease_id, rows in leases:
            try:
                await self._queue.release(shard, lease_id, rows)
            except Unavailable as error:
                log.warning("a lease could not be given back and runs out: %s", error.message)


async def _within(seconds: float, work: Awaitable[object]) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await work
    except TimeoutError:
        return False
    return True
