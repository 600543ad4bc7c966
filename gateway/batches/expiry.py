"""What has run out: files and batches past their time, and what interrupted writers left behind."""

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass

from gateway.core.clock import Clock
from gateway.core.errors import NotFound
from gateway.core.loops import keep_doing
from gateway.store.batch_disk import job_file
from gateway.store.batch_record import BatchRecord
from gateway.store.batches import BatchStore
from gateway.store.blobs import LocalBlobs
from gateway.store.files import FileStore
from gateway.store.leftovers import ended, half_made, remove_orphans, unfinished_work

log = logging.getLogger(__name__)

_HOUR = 3600.0
_DAY = 24 * _HOUR


@dataclass(frozen=True, slots=True)
class Ages:
    """In seconds.

    ``orphan``: after that what has no record is nobody's; ``unwritten``: after that a writer that
    was not heard of, or what a batch needed to run, is left over; ``batch``: how long a batch is
    kept after its end, at least, and at least as long as its files.
    """

    every: float = 600.0
    orphan: float = _DAY
    unwritten: float = _HOUR
    batch: float = 30 * _DAY


_AGES = Ages()


class Expiry:
    """Removes what has run out. Rows of batches expire in the queue, by its clock."""

    def __init__(
        self,
        files: FileStore,
        blobs: LocalBlobs,
        batches: BatchStore,
        clock: Clock,
        ages: Ages = _AGES,
    ) -> None:
        self._files = files
        self._blobs = blobs
        self._batches = batches
        self._clock = clock
        self._ages = ages

    async def run(self) -> None:
        """A pass at once and one every ten minutes, until cancelled."""
        await keep_doing(self.step, "sweeping", every=self._ages.every)

    async def step(self) -> int:
        """One pass; returns how many files, unfinished blobs and batches were removed."""
        removed = await self._files.sweep()
        removed += await self._blobs.sweep(self._clock, self._ages.unwritten)
        await self._sweep_tables()
        removed += await self._sweep_orphans()
        await self._sweep_work()
        return removed + await self._sweep_batches()

    async def _sweep_tables(self) -> None:
        for batch_id in await self._batches.with_tables():
            record = await self._batches.durable(batch_id)
            if record is not None and not await self._has_files(record):
                await self._batches.remove_tables(batch_id)

    async def _sweep_orphans(self) -> int:
        """Bytes and folders whose record was never written."""
        before = self._clock.now() - self._ages.orphan
        removed = await asyncio.to_thread(remove_orphans, self._blobs.root, before)
        for batch_id in await asyncio.to_thread(half_made, self._blobs.root, before):
            if not await self._batches.known(batch_id):
                await self._blobs.delete(job_file(batch_id, ""))
                removed += 1
        return removed

    async def _sweep_work(self) -> None:
        """What a batch needed to run, if its finaliser died before it removed that."""
        before = self._clock.now() - self._ages.unwritten
        for batch_id in await asyncio.to_thread(unfinished_work, self._blobs.root, before):
            record = await self._batches.durable(batch_id)
            if record is not None:
                await self._batches.remove_work(batch_id, len(record.segments))

    async def _sweep_batches(self) -> int:
        """Batches that ended long ago and whose files are gone."""
        before = self._clock.now() - self._ages.batch
        removed = 0
        for batch_id in await asyncio.to_thread(ended, self._blobs.root, before):
            record = await self._batches.durable(batch_id)
            if record is not None and not await self._has_files(record):
                await self._batches.forget(record)
                removed += 1
        return removed

    async def _has_files(self, record: BatchRecord) -> bool:
        for file_id in (record.output_file_id, record.error_file_id):
            if file_id is not None:
                with suppress(NotFound):
                    await self._files.get(record.facts.tenant, file_id)
                    return True
        return False
