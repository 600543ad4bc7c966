"""Takes back what silent dispatchers held, promotes what is due, gives up what is dead."""

import asyncio
import logging
import random

from gateway.batches.lines import MESSAGES, transport_error_line
from gateway.batches.rows import RowSource
from gateway.core.errors import HeadwayError
from gateway.core.usage import Usage
from gateway.dispatch.run import Finished
from gateway.dispatch.settle import Settlement, Settler
from gateway.store.batches import job_of
from gateway.store.queue import QueueClient, RetryRule

log = logging.getLogger(__name__)

_MOST = 64
_NO_LEASE = ""


class Reaper:
    """Every dispatcher has one; doing its work twice is harmless. ``interval`` in seconds."""

    def __init__(
        self,
        queue: QueueClient,
        source: RowSource,
        settler: Settler,
        retry: RetryRule,
        interval: float,
    ) -> None:
        self._queue = queue
        self._source = source
        self._settler = settler
        self._retry = retry
        self._interval = interval

    async def run(self) -> None:
        """Look after every shard until cancelled."""
        while True:
            await asyncio.sleep(self._interval * random.uniform(0.8, 1.2))  # noqa: S311
            try:
                for shard in await self._queue.shards():
                    await self.sweep(shard)
            except (HeadwayError, OSError) as error:
                log.warning("the queue could not be swept: %s", error)

    async def sweep(self, shard: str) -> None:
        """One round over one shard."""
        await self._take_back(shard)
        while True:
            ticked = await self._queue.tick(shard, _MOST)
            if max(ticked.promoted, ticked.expired) < _MOST:
                break
        dead: dict[str, list[tuple[int, str]]] = {}
        for segment, index, code in await self._queue.dead(shard, _MOST):
            dead.setdefault(segment, []).append((index, code))
        for segment, rows in dead.items():
            await self._bury(shard, segment, rows)

    async def _take_back(self, shard: str) -> None:
        """Take back every lease that ran out, however many there are."""
        leases = returned = 0
        while True:
            reaped = await self._queue.reap(shard, _MOST, self._retry)
            leases, returned = leases + reaped.leases, returned + reaped.returned
            if reaped.leases < _MOST:
                break
        if leases:
            log.warning("%d leases ran out; %d rows wait again", leases, returned)

    async def _bury(self, shard: str, segment: str, rows: list[tuple[int, str]]) -> None:
        """Write the error line of rows whose deliveries are used up."""
        names = await self._source.custom_ids(segment, [index for index, _ in rows])
        for index, code in rows:
            line = transport_error_line(names[index], code, MESSAGES.get(code, code))
            result = Finished(line, Usage(), ok=False)
            self._settler.put(Settlement(shard, _NO_LEASE, segment, job_of(segment), index, result))
        await self._settler.drained()
