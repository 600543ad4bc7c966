"""Puts back what Redis lost or a crash left half done; the manifests on disk are the record."""

import logging

from gateway.batches.loops import keep_doing
from gateway.batches.service import stop_segments
from gateway.store.batch_record import BatchRecord
from gateway.store.batches import BatchStore
from gateway.store.keys import shard_of
from gateway.store.queue import QueueClient

log = logging.getLogger(__name__)

_EVERY_SECONDS = 60.0


class Reconciler:
    """Looks at every batch on disk that is not known to be settled."""

    def __init__(self, batches: BatchStore, queue: QueueClient) -> None:
        self._batches = batches
        self._queue = queue
        self._settled: set[str] = set()

    async def run(self) -> None:
        """A pass at once and one a minute, until cancelled."""
        await keep_doing(self.step, "reconciling", every=_EVERY_SECONDS)

    async def step(self) -> int:
        """One pass; returns how many batches were put back."""
        if await self._batches.fresh_epoch():
            self._settled.clear()
        put_back = 0
        for batch_id in await self._batches.all_ids():
            if batch_id in self._settled:
                continue
            if not await self._batches.known(batch_id):
                put_back += await self._batches.put_back(batch_id) is not None
            elif await self._settle(batch_id):
                self._settled.add(batch_id)
        if put_back:
            log.warning("%d batches were missing in Redis and are put back", put_back)
        return put_back

    async def _settle(self, batch_id: str) -> bool:
        """Repair one batch; True when it has ended and is whole on disk and in Redis."""
        record = await self._batches.settled_or_live(batch_id)
        if record is None:
            return False
        if record.ended:
            if not await self._batches.is_final(batch_id):
                await self._batches.save_final(batch_id)
            await self._batches.announce_again(batch_id)
            return True
        await stop_segments(record, self._queue)
        if not record.segments or await self._lost_segment(record):
            await self._batches.ask_intake(record.facts)
        return False

    async def _lost_segment(self, record: BatchRecord) -> bool:
        for segment in record.segments:
            if record.segment_end(segment.segment) is None:
                view = await self._queue.segment(shard_of(segment.model), segment.segment)
                if view is None:
                    return True
        return False
