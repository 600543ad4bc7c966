"""Puts back jobs that Redis lost or a crash left half made, and removes those of long ago."""

import asyncio
import logging

from gateway.batches.loops import keep_doing
from gateway.core.clock import Clock
from gateway.jobs.segment import enqueue
from gateway.store.job_files import folder_ended_at
from gateway.store.jobs import JobStore
from gateway.store.keys import shard_of
from gateway.store.queue import QueueClient

log = logging.getLogger(__name__)

_EVERY_SECONDS = 60.0
_ALL_AGAIN_PASSES = 10
_AT_ONCE = 32
#: 30 days after the latest deadline that a job can have.
KEPT_SECONDS = 60 * 86_400


class JobKeeper:
    """Looks at every job on disk that has not ended. The disk is the record."""

    def __init__(self, jobs: JobStore, queue: QueueClient, clock: Clock) -> None:
        self._jobs = jobs
        self._queue = queue
        self._clock = clock
        self._done: set[str] = set()
        self._seen: set[str] = set()
        self._passes = 0

    async def run(self) -> None:
        """A pass at once and one a minute, until cancelled."""
        await keep_doing(self.step, "keeping jobs", every=_EVERY_SECONDS)

    async def step(self) -> int:
        """One pass; returns how many jobs were put into the queue again.

        Folders in which all have ended are not looked at again, and jobs that were found in the
        queue not for ten minutes, unless Redis has lost everything.
        """
        fresh = await self._jobs.fresh_epoch()
        if fresh or self._passes % _ALL_AGAIN_PASSES == 0:
            self._seen.clear()
        if fresh:
            self._done.clear()
        self._passes += 1
        put_back = 0
        for folder in await self._jobs.folders():
            if folder not in self._done:
                put_back += await self._look(folder, fresh)
        if put_back:
            log.warning("%d jobs were missing in the queue and are put back", put_back)
        return put_back

    async def _look(self, folder: str, fresh: bool) -> int:
        now = self._clock.now()
        closed_at = folder_ended_at(folder)
        if closed_at + KEPT_SECONDS < now:
            await self._jobs.remove_folder(folder)
            return 0
        jobs = await self._jobs.ids_in(folder)
        open_jobs = [job_id for job_id, ended in jobs.items() if not ended]
        if not open_jobs and closed_at + _EVERY_SECONDS < now:
            self._done.add(folder)
        wanted = list(jobs) if fresh else [job for job in open_jobs if job not in self._seen]
        put_back = 0
        for at in range(0, len(wanted), _AT_ONCE):
            put_back += sum(await asyncio.gather(*map(self._repair, wanted[at : at + _AT_ONCE])))
        self._seen.update(open_jobs)
        return put_back

    async def _repair(self, job_id: str) -> bool:
        """Have Redis know a job and, unless it has ended, the queue hold it. True: it did not."""
        record = await self._jobs.load(job_id) if await self._jobs.known(job_id) else None
        facts = await self._jobs.put_back(job_id) if record is None else record.facts
        if facts is None or (record is not None and record.end is not None):
            return False
        if await self._queue.segment(shard_of(facts.model), facts.segment) is not None:
            return False
        await enqueue(self._queue, facts, self._clock)
        return True
