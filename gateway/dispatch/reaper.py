"""Takes back what silent dispatchers held, promotes what is due, gives up what is dead."""

import asyncio
import logging
import random

from gateway.batches.lines import MESSAGES, transport_error_line
from gateway.batches.rows import RowSource
from gateway.core.errors import HeadwayError, Unavailable
from gateway.core.usage import Usage
from gateway.core.work import DeadRow
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
        self._leapt: set[str] = set()

    async def run(self) -> None:
        """Look after every shard until cancelled."""
        while True:
            await asyncio.sleep(self._interval * random.uniform(0.8, 1.2))  # noqa: S311
            try:
                for shard in await self._queue.shards():
                    await self.sweep(shard)
            except (HeadwayError, OSError) as error:
                log.warning("the queue could not be swept: %s", error)
            except Exception:
                log.exception("the queue could not be swept")

    async def sweep(self, shard: str) -> None:
        """One round over one shard."""
        await self._take_back(shard)
        while True:
            ticked = await self._queue.tick(shard, _MOST)
            self._note_clock(shard, ticked.jump_ms)
            if max(ticked.promoted, ticked.expired) < _MOST:
                break
        dead: dict[str, list[DeadRow]] = {}
        for row in await self._queue.dead(shard, _MOST):
            dead.setdefault(row.segment, []).append(row)
        for segment, rows in dead.items():
            try:
                await self._bury(shard, segment, rows)
            except Unavailable:
                raise
            except Exception:
                log.exception("%s: %d dead rows cannot be ended yet", segment, len(rows))

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

    async def _bury(self, shard: str, segment: str, rows: list[DeadRow]) -> None:
        """Write the error line of rows whose deliveries are used up."""
        names = await self._source.custom_ids(segment, [row.index for row in rows])
        job = job_of(segment)
        for row in rows:
            result = Finished(_last_line(names[row.index], row), Usage(), ok=False)
            self._settler.put(Settlement(shard, _NO_LEASE, segment, job, row.index, result))
        await self._settler.drained()

    def _note_clock(self, shard: str, jump_ms: int) -> None:
        if jump_ms and shard not in self._leapt:
            log.error(
                "%s: the queue server's clock leapt by %d s; nothing expires until "
                "`headway queue confirm-clock`",
                shard,
                jump_ms // 1000,
            )
        (self._leapt.add if jump_ms else self._leapt.discard)(shard)


def _last_line(custom_id: str, row: DeadRow) -> bytes:
    """The error line: of the crash, or of the last error when the tries are used up."""
    code = row.reason if row.reason in MESSAGES else row.code or row.reason
    message = MESSAGES.get(row.reason, "This request was given up after its last try.")
    if row.code and row.code != code:
        message += f" Its last error was {row.code}."
    return transport_error_line(custom_id, code, message)
