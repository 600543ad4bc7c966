"""From the commit of its row to the final state of a job.

The result line is on disk since before the commit; what is left is the state: in Redis by one
compare-and-set, which decides against a cancel, then on disk. Doing it twice changes nothing.
"""

import logging
from collections.abc import Awaitable, Callable

from gateway.core.clock import Clock
from gateway.core.errors import NotFound
from gateway.core.work import FinishClaim, SegmentStatus
from gateway.jobs.results import error_in
from gateway.schemas.job import JobStatus
from gateway.store.blobs import BlobStore
from gateway.store.job_files import part_blob
from gateway.store.job_record import JobEnd
from gateway.store.jobs import REMEMBERED_SECONDS, JobStore
from gateway.store.queue import QueueClient

log = logging.getLogger(__name__)

CANCELLED = {"code": "job_cancelled", "message": "The job was cancelled."}
_EXPIRED = {
    "code": "deadline_exceeded",
    "message": "The job did not run to its end before its deadline.",
}
_CAUGHT = {**_EXPIRED, "message": "The job was running at its deadline and was stopped."}
_LOST = {"code": "internal_error", "message": "The result of the job was lost."}


#: Takes what kind of event it is, the job, its tenant and when it ended, in Unix seconds.
Tell = Callable[[str, str, str, int], Awaitable[None]]


class JobFinisher:
    """Ends jobs whose segment takes no more results; ``tell`` is told of each, maybe twice."""

    def __init__(
        self,
        jobs: JobStore,
        blobs: BlobStore,
        queue: QueueClient,
        clock: Clock,
        tell: Tell | None = None,
    ) -> None:
        self._jobs = jobs
        self._blobs = blobs
        self._queue = queue
        self._clock = clock
        self._tell = tell

    async def take(self, shard: str, claim: FinishClaim) -> None:
        """Give a job its final state and free its segment."""
        end = await self._ending(claim)
        before = await self._jobs.end(claim.job, end)
        if before is JobStatus.QUEUED:
            await self._jobs.save(claim.job, end)
        elif before is not None:
            end = await self._saved(claim.job) or end
        if before is not None:
            await self._announce(claim, end)
        await self._queue.finish_commit(shard, claim.segment, claim.fence, REMEMBERED_SECONDS)

    async def _saved(self, job_id: str) -> JobEnd | None:
        """How the job has ended before; that is made durable, its maker may have died."""
        live = await self._jobs.live(job_id)
        if live is None or live.end is None:
            return None
        await self._jobs.save(job_id, live.end)
        return live.end

    async def _announce(self, claim: FinishClaim, end: JobEnd) -> None:
        if self._tell is not None:
            await self._tell(f"job.{end.status.value}", claim.job, claim.tenant, end.at)

    async def _ending(self, claim: FinishClaim) -> JobEnd:
        now = int(self._clock.now())
        if claim.ref is None:
            if claim.closing is SegmentStatus.CANCELLED:
                return JobEnd(JobStatus.CANCELLED, now, error=CANCELLED)
            return JobEnd(JobStatus.EXPIRED, now, error=_CAUGHT if claim.caught else _EXPIRED)
        if claim.ok:
            return JobEnd(JobStatus.COMPLETED, now, claim.usage, ref=claim.ref)
        try:
            name = part_blob(claim.job, claim.ref.part)
            line = await self._blobs.read_ranges(name, [(claim.ref.offset, claim.ref.length)])
        except NotFound:
            log.exception("%s: its result is gone", claim.job)
            return JobEnd(JobStatus.FAILED, now, claim.usage, _LOST)
        return JobEnd(JobStatus.FAILED, now, claim.usage, error_in(line[0]), claim.ref)
