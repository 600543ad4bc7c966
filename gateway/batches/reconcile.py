"""Puts back what Redis lost or a crash left half done; what is on disk is the record.

A loss is noticed within a second, and then every batch is looked at.
"""

import logging

from gateway.batches.by_hand import set_pauses_again
from gateway.batches.losses import Loss, Losses
from gateway.batches.service import stop_segments
from gateway.core.clock import Clock
from gateway.core.loops import keep_doing
from gateway.store.batch_record import BatchRecord
from gateway.store.batches import BatchStore
from gateway.store.billed import ended_segments
from gateway.store.controls import Controls
from gateway.store.keys import shard_of
from gateway.store.queue import QueueClient

log = logging.getLogger(__name__)

_LOOK_SECONDS = 1.0
_PASS_SECONDS = 60.0


class Reconciler:
    """Looks at every batch on disk that is not known to be settled."""

    def __init__(
        self, batches: BatchStore, queue: QueueClient, controls: Controls, clock: Clock
    ) -> None:
        self._batches = batches
        self._queue = queue
        self._controls = controls
        self._clock = clock
        self._settled: set[str] = set()
        self._losses = Losses(batches)
        self._passed_at = -_PASS_SECONDS

    async def run(self) -> None:
        """Look every second, until cancelled."""
        await keep_doing(self.look, "reconciling", every=_LOOK_SECONDS)

    async def look(self) -> None:
        """A pass when Redis is not what it was, or a minute has gone by."""
        due = self._clock.monotonic() - self._passed_at >= _PASS_SECONDS
        if due or await self._losses.noticed():
            await self.step()

    async def step(self) -> int:
        """One pass; returns how many batches were put back."""
        loss = await self._losses.begin()
        if loss.some:
            self._settled.clear()
            await set_pauses_again(self._controls, self._queue)
        put_back = 0
        for batch_id in await self._batches.all_ids():
            if batch_id not in self._settled:
                put_back += await self._look_at(batch_id, loss)
        for ended in await self._batches.forgotten() if loss.all else ():
            await self._queue.settle_ended(shard_of(ended.model), ended)
        await self._losses.end()
        self._passed_at = self._clock.monotonic()
        if put_back:
            log.warning("%d batches were missing in Redis and are put back", put_back)
        return put_back

    async def _look_at(self, batch_id: str, loss: Loss) -> bool:
        """Repair one batch; True when it was missing."""
        live = await self._batches.live(batch_id)
        if live is None and await self._batches.put_back(batch_id) is None:
            return False
        record = await self._batches.settled_or_live(batch_id)
        if record is None:
            return live is None
        if record.ended:
            await self._settle(record, behind=loss.all or live is None or not live.ended)
            self._settled.add(batch_id)
        elif live is not None:
            await self._repair(record, fresh=loss.some)
        return live is None

    async def _settle(self, record: BatchRecord, *, behind: bool) -> None:
        """Make a batch that has ended whole, on disk and in Redis."""
        if not await self._batches.is_final(record.id):
            await self._batches.save_final(record.id)
        await self._batches.announce_again(record.id)
        for ended in ended_segments(record) if behind else ():
            await self._queue.settle_ended(shard_of(ended.model), ended)

    async def _repair(self, record: BatchRecord, *, fresh: bool) -> None:
        await stop_segments(record, self._queue)
        if fresh or not record.segments or await self._lost_segment(record):
            await self._batches.ask_intake(record.facts)

    async def _lost_segment(self, record: BatchRecord) -> bool:
        for segment in record.segments:
            if record.segment_end(segment.segment) is None:
                view = await self._queue.segment(shard_of(segment.model), segment.segment)
                if view is None:
                    return True
        return False
