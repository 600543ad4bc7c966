"""What has run out: files past their time, and what interrupted writers left behind."""

import logging

from gateway.batches.loops import keep_doing
from gateway.core.clock import Clock
from gateway.store.blobs import LocalBlobs
from gateway.store.files import FileStore

log = logging.getLogger(__name__)

_EVERY_SECONDS = 600.0


class Expiry:
    """Removes expired files and unfinished blobs. Batches expire in the queue, by its clock."""

    def __init__(self, files: FileStore, blobs: LocalBlobs, clock: Clock) -> None:
        self._files = files
        self._blobs = blobs
        self._clock = clock

    async def run(self) -> None:
        """A pass at once and one every ten minutes, until cancelled."""
        await keep_doing(self.step, "sweeping", every=_EVERY_SECONDS)

    async def step(self) -> int:
        """One pass; returns how many files and unfinished blobs were removed."""
        return await self._files.sweep() + await self._blobs.sweep(self._clock)
