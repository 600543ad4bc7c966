"""Puts back jobs that Redis lost or a crash left half made, and removes those of long ago."""

import asyncio
import logging

from gateway.batches.by_hand import set_pauses_again
from gateway.batches.losses import Loss, Losses
from gateway.batches.recovered import restore
from gateway.core.clock import Clock
from gateway.core.loops import keep_doing
from gateway.jobs.enqueues import Enqueues
from gateway.jobs.segment import enqueue, spec_of
from gateway.store.controls import Controls
from gateway.store.job_files import folder_ended_at
from gateway.store.job_record import JobEnd, JobRecord
from gateway.store.jobs import REMEMBERED_SECONDS, FoundJob, JobStore
from gateway.store.keys import shard_of
from gateway.store.queue import QueueClient
from gateway.store.rebuild import EndedSegment

log = logging.getLogger(__name__)

_LOOK_SECONDS = 1.0
_EVERY_SECONDS = 60.0
_RECENT_SECONDS = REMEMBERED_SECONDS / 2
_SETTLED_SECONDS = 86_400
_ALL_AGAIN_PASSES = 10
_AT_ONCE = 32
#: 30 days after the latest deadline that a job can have.
KEPT_SECONDS = 60 * 86_400


class JobKeeper:
    """Looks at every job on disk that has not ended. The disk is the record."""

    def __init__(
        self, jobs: JobStore, queue: QueueClient, controls: Controls, clock: Clock
    ) -> None:
        self._jobs = jobs
        self._queue = queue
        self._enqueues = Enqueues(queue)
        self._controls = controls
        self._clock = clock
        self._done: set[str] = set()
        self._seen: set[str] = set()
        self._passes = 0
        self._losses = Losses(jobs)
        self._passed_at = -_EVERY_SECONDS

    async def run(self) -> None:
        """Look every second, until cancelled."""
        await keep_doing(self.look, "keeping jobs", every=_LOOK_SECONDS)

    async def look(self) -> None:
        """A pass when Redis is not what it was, or a minute has gone by."""
        due = self._clock.monotonic() - self._passed_at >= _EVERY_SECONDS
        if due or await self._losses.noticed():
            await self.step()

    async def step(self) -> int:
        """One pass; returns how many jobs were put into the queue again.

        Folders in which all have ended are not looked at again, and jobs that were found in the
        queue not for ten minutes, unless Redis may have lost something.
        """
        loss = await self._losses.begin()
        if loss.some or self._passes % _ALL_AGAIN_PASSES == 0:
            self._seen.clear()
        if loss.some:
            await set_pauses_again(self._controls, self._queue)
        if loss.all:
            self._done.clear()
        self._passes += 1
        put_back = 0
        for folder in await self._jobs.folders():
            if folder not in self._done:
                put_back += await self._look(folder, loss)
        await self._count_removed(loss)
        await self._losses.end()
        self._passed_at = self._clock.monotonic()
        if put_back:
            log.warning("%d jobs were missing in the queue and are put back", put_back)
        return put_back

    async def _look(self, folder: str, loss: Loss) -> int:
        now = self._clock.now()
        closed_at = folder_ended_at(folder)
        if closed_at + KEPT_SECONDS < now:
            await self._jobs.remove_folder(folder)
            return 0
        jobs = await self._jobs.ids_in(folder)
        open_jobs = [job_id for job_id, found in jobs.items() if not found.ended]
        if not open_jobs and closed_at + _EVERY_SECONDS < now:
            self._done.add(folder)
        wanted = list(jobs) if loss.some else [job for job in open_jobs if job not in self._seen]
        put_back = 0
        for at in range(0, len(wanted), _AT_ONCE):
            some = [
                self._repair(job_id, jobs[job_id], loss) for job_id in wanted[at : at + _AT_ONCE]
            ]
            put_back += sum(await asyncio.gather(*some))
        self._seen.update(open_jobs)
        return put_back

    async def _repair(self, job_id: str, found: FoundJob, loss: Loss) -> bool:
        """Have Redis know a job and, unless it has ended, the queue hold it. True: it did not."""
        record = await self._record(job_id, found)
        if record is None:
            return False
        if record.end is not None:
            if loss.some:
                await self._settle(record, record.end, loss)
            return False
        facts = record.facts
        lost = await self._queue.segment(shard_of(facts.model), facts.segment) is None
        if not (lost or loss.some):
            return False
        result = await self._jobs.result(job_id, found.parts)
        if result is not None:
            hour, outcome = result
            await restore(self._queue, spec_of(facts, self._clock), {hour: [outcome]})
        elif lost:
            await enqueue(self._enqueues, facts, self._clock)
        return lost

    async def _record(self, job_id: str, found: FoundJob) -> JobRecord | None:
        """The record, which Redis has from now on unless the job has ended."""
        live = await self._jobs.live(job_id)
        if live is None:
            await self._jobs.put_back(job_id)
            return await self._jobs.load(job_id)
        if found.ended and live.end is None:
            return await self._told_of_its_end(job_id)
        return live

    async def _told_of_its_end(self, job_id: str) -> JobRecord | None:
        """Of a job that ended in the second that Redis lost: the record, as Redis has it again."""
        record = await self._jobs.durable(job_id)
        if record is not None and record.end is not None:
            await self._jobs.restore_end(job_id, record.end)
            await self._queue.cancel(shard_of(record.facts.model), record.facts.segment, 0)
        return record

    async def _settle(self, record: JobRecord, end: JobEnd, loss: Loss) -> None:
        """Have the meter count the result of an ended job that the queue lost.

        A queue that did not lose everything has forgotten those of some minutes ago.
        """
        recent = end.at > self._clock.now() - _RECENT_SECONDS
        if end.ref is None or not (loss.all or recent):
            return
        ended = await self._jobs.ended(record)
        if ended is not None:
            await self._count(ended)

    async def _count_removed(self, loss: Loss) -> None:
        """After the others: a job that is removed meanwhile is among these."""
        if loss.all:
            async for ended in self._jobs.removed():
                await self._count(ended)

    async def _count(self, ended: EndedSegment) -> None:
        shard = shard_of(ended.model)
        if await self._queue.settle_ended(shard, ended):
            await self._queue.forget(shard, ended.segment, _SETTLED_SECONDS)
