"""From the commit of its row to the final state of a job.

The result line is on disk since before the commit; what is left is the state: in Redis by one
compare-and-set, which decides against a cancel, then on disk. Doing it twice changes nothing.
"""

import logging
import struct
from collections.abc import Awaitable, Callable

from gateway.core.clock import Clock
from gateway.core.errors import NotFound
from gateway.core.work import FinishClaim, PartRef, SegmentStatus, SegmentView
from gateway.jobs.results import error_in
from gateway.schemas.job import JobStatus
from gateway.store.blobs import BlobStore
from gateway.store.job_files import part_blob
from gateway.store.job_record import JobEnd, JobRecord
from gateway.store.jobs import REMEMBERED_SECONDS, JobStore
from gateway.store.queue import QueueClient

log = logging.getLogger(__name__)

_REF = struct.Struct("<IQI")
CANCELLED = {"code": "job_cancelled", "message": "The job was cancelled."}
_EXPIRED = {"code": "deadline_exceeded", "message": "The job did not run before its deadline."}
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
        record = await self._jobs.load(claim.job)
        if record is not None:
            if record.end is None:
                await self._end(shard, record)
            await self._jobs.save_final(claim.job)
            await self._announce(claim.job)
        if await self._queue.finish_commit(shard, claim.segment, claim.fence):
            await self._queue.forget(shard, claim.segment, REMEMBERED_SECONDS)

    async def _announce(self, job_id: str) -> None:
        record = None if self._tell is None else await self._jobs.load(job_id)
        if self._tell is not None and record is not None and record.end is not None:
            kind = f"job.{record.end.status.value}"
            await self._tell(kind, job_id, record.facts.tenant, record.end.at)

    async def _end(self, shard: str, record: JobRecord) -> None:
        if not await self._jobs.known(record.id):
            await self._jobs.put_back(record.id)
        view = await self._queue.segment(shard, record.facts.segment)
        if view is not None and view.status is SegmentStatus.FINALIZING:
            await self._jobs.end(record.id, await self._ending(shard, record, view))

    async def _ending(self, shard: str, record: JobRecord, view: SegmentView) -> JobEnd:
        now = int(self._clock.now())
        if not view.ok and not view.bad:
            if view.closing is SegmentStatus.CANCELLED:
                return JobEnd(JobStatus.CANCELLED, now, error=CANCELLED)
            return JobEnd(JobStatus.EXPIRED, now, error=_EXPIRED)
        _, refs = await self._queue.refs(shard, record.facts.segment)
        ref = PartRef(*_REF.unpack_from(refs))
        if view.ok:
            return JobEnd(JobStatus.COMPLETED, now, view.usage, ref=ref)
        try:
            name = part_blob(record.id, ref.part)
            line = (await self._blobs.read_ranges(name, [(ref.offset, ref.length)]))[0]
        except NotFound:
            log.exception("%s: its result is gone", record.id)
            return JobEnd(JobStatus.FAILED, now, view.usage, _LOST)
        return JobEnd(JobStatus.FAILED, now, view.usage, error_in(line), ref)
