"""What has run out: files past their time, and what interrupted writers left behind."""

import logging
from contextlib import suppress

from gateway.batches.loops import keep_doing
from gateway.core.clock import Clock
from gateway.core.errors import NotFound
from gateway.store.batch_record import BatchRecord
from gateway.store.batches import BatchStore
from gateway.store.blobs import LocalBlobs
from gateway.store.files import FileStore

log = logging.getLogger(__name__)

_EVERY_SECONDS = 600.0


class Expiry:
    """Removes expired files, what only they need, and unfinished blobs.

    Batches stay. Their rows expire in the queue, by its clock.
    """

    def __init__(
        self, files: FileStore, blobs: LocalBlobs, batches: BatchStore, clock: Clock
    ) -> None:
        self._files = files
        self._blobs = blobs
        self._batches = batches
        self._clock = clock

    async def run(self) -> None:
        """A pass at once and one every ten minutes, until cancelled."""
        await keep_doing(self.step, "sweeping", every=_EVERY_SECONDS)

    async def step(self) -> int:
        """One pass; returns how many files and unfinished blobs were removed."""
        removed = await self._files.sweep() + await self._blobs.sweep(self._clock)
        for batch_id in await self._batches.with_tables():
            record = await self._batches.durable(batch_id)
            if record is not None and not await self._has_files(record):
                await self._batches.remove_tables(batch_id)
        return removed

    async def _has_files(self, record: BatchRecord) -> bool:
        for file_id in (record.output_file_id, record.error_file_id):
            if file_id is not None:
                with suppress(NotFound):
                    await self._files.get(record.facts.tenant, file_id)
                    return True
        return False
