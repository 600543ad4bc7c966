"""What a client can do with jobs. No HTTP, no Redis commands."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress

from gateway.core.clock import Clock
from gateway.core.errors import (
    Conflict,
    InvalidRequest,
    RateLimited,
    StoreFull,
    StoreUnavailable,
)
from gateway.core.ids import new_ordered_id
from gateway.core.lanes import Lane
from gateway.core.work import Quota
from gateway.jobs.enqueues import Enqueues
from gateway.jobs.finish import CANCELLED
from gateway.jobs.results import Result, result_of
from gateway.jobs.segment import enqueue, input_line, tokens_of
from gateway.routing.router import Router, model_not_found
from gateway.schemas.job import ENDED, JobCreate, JobStatus
from gateway.schemas.lists import PageRequest
from gateway.store.job_commands import IdempotencyClaim, key_digest
from gateway.store.job_record import JobEnd, JobFacts, JobRecord
from gateway.store.jobs import JobStore, own_key
from gateway.store.keys import shard_of
from gateway.store.queue import QueueClient
from gateway.tenancy.keys import Caller

log = logging.getLogger(__name__)

CANCEL_GRACE_MS = 10_000
_LONGEST_KEY = 255


class JobService:
    """Create, read, list, cancel, delete. Every call names who asks; foreign jobs are not there."""

    def __init__(
        self,
        jobs: JobStore,
        queue: QueueClient,
        router: Router,
        quota: Callable[[str], Quota],
        clock: Clock,
    ) -> None:
        self._jobs = jobs
        self._queue = queue
        self._enqueues = Enqueues(queue)
        self._router = router
        self._quota = quota
        self._clock = clock

    async def create(
        self, caller: Caller, wanted: JobCreate, idempotency_key: str | None = None
    ) -> JobRecord:
        """Accept a job; it is safe on disk when this returns, and in the queue unless that is away.

        Raises ModelNotFound as the call itself would, RateLimited when the tenant would have more
        queued than its quota, Conflict when the idempotency key came with another request in the
        last 24 h.
        """
        model = wanted.request.model
        if not caller.may_use(model):
            raise model_not_found(model)
        self._router.plan(model, Lane.BATCH)
        if idempotency_key is None:
            return await self._create(caller, wanted, self._new_id(), None)
        if not 0 < len(idempotency_key) <= _LONGEST_KEY:
            raise InvalidRequest(f"idempotency-key has at most {_LONGEST_KEY} characters.")
        own = IdempotencyClaim(self._new_id(), wanted.digest)
        claim = await self._jobs.claim_key(caller.tenant, idempotency_key, own)
        if claim.digest != own.digest:
            raise Conflict(
                "This idempotency key was used for another request.",
                code="idempotency_key_reused",
            )
        known = None if claim == own else await self._jobs.load(claim.batch_id)
        if known is not None:
            return await self._live(known)
        key = key_digest(own_key(idempotency_key))
        return await self._create(caller, wanted, claim.batch_id, key)

    async def get(self, caller: Caller, job_id: str) -> JobRecord:
        """The job as it stands. Raises NotFound."""
        return await self._live(await self._jobs.get(caller.tenant, job_id))

    async def page(self, caller: Caller, page: PageRequest) -> tuple[list[JobRecord], bool]:
        """A page, newest first, and whether more follow."""
        records, has_more = await self._jobs.page(caller.tenant, page.limit, page.after)
        return list(await asyncio.gather(*map(self._live, records))), has_more

    async def result(self, caller: Caller, job_id: str) -> Result | None:
        """What the call was answered; None while the job has not ended.

        Raises NotFound, and Conflict for a job that was cancelled or expired.
        """
        record = await self._jobs.get(caller.tenant, job_id)
        if record.end is None:
            return None
        if record.end.ref is None:
            error = record.end.error or {}
            raise Conflict(str(error.get("message")), code=error.get("code"))
        return result_of(await self._jobs.line(record))

    async def cancel(self, caller: Caller, job_id: str) -> JobRecord:
        """Cancel; again on a job that was cancelled changes nothing.

        A call in flight is aborted. Raises Conflict when the job has ended otherwise.
        """
        record = await self._jobs.get(caller.tenant, job_id)
        if record.end is None:
            await self._stop(record.facts)
            end = JobEnd(JobStatus.CANCELLED, int(self._clock.now()), error=CANCELLED)
            if await self._jobs.end(job_id, end) is JobStatus.QUEUED:
                await self._jobs.save(job_id, end)
            record = await self._jobs.get(caller.tenant, job_id)
        if record.status is not JobStatus.CANCELLED:
            raise Conflict(
                f"A job that is {record.status} cannot be cancelled.", code="job_not_cancellable"
            )
        return record

    async def delete(self, caller: Caller, job_id: str) -> None:
        """Remove a job that has ended, with its result. Raises Conflict for one that has not."""
        record = await self._jobs.get(caller.tenant, job_id)
        if record.status not in ENDED:
            raise Conflict(
                "Only a job that has ended can be deleted: cancel it first.",
                code="job_not_finished",
            )
        await self._jobs.remove(record)
        # last: without its segment, a job that is still on disk would be billed again after a loss
        if await self._jobs.epoch() is None:
            return  # a repair goes on, which the segment keeps from counting the job twice
        with suppress(Conflict):  # its segment is about to be finished, and forgotten soon
            await self._queue.purge(shard_of(record.facts.model), record.facts.segment)

    async def _create(
        self, caller: Caller, wanted: JobCreate, job_id: str, key: str | None
    ) -> JobRecord:
        facts = JobFacts(
            id=job_id,
            tenant=caller.tenant,
            key_id=caller.key_id,
            endpoint=wanted.endpoint,
            model=wanted.request.model,
            tokens=tokens_of(wanted),
            created_ms=int(self._clock.now() * 1000),
            window_ms=int(wanted.window_seconds * 1000),
            delay_ms=int(wanted.delay_seconds * 1000),
            priority=wanted.priority,
            weight=caller.weight,
            metadata=wanted.metadata,
            key=key,
            digest=wanted.digest,
        )
        record = await self._jobs.create(facts, input_line(job_id, wanted))
        try:
            await enqueue(self._enqueues, facts, self._clock, self._quota(facts.tenant))
        except (RateLimited, StoreFull):
            await self._jobs.remove(record)
            raise
        except StoreUnavailable as error:
            log.warning("%s is enqueued later: %s", job_id, error.message)
        return record

    async def _stop(self, facts: JobFacts) -> None:
        """Close the segment; one that the queue lost is put back first, to be closed there."""
        shard = shard_of(facts.model)
        stopped = await self._queue.cancel(shard, facts.segment, CANCEL_GRACE_MS)
        if stopped is None:
            await self._jobs.put_back(facts.id)
            await enqueue(self._enqueues, facts, self._clock)
            await self._queue.cancel(shard, facts.segment, CANCEL_GRACE_MS)

    async def _live(self, record: JobRecord) -> JobRecord:
        if record.end is not None:
            return record
        facts = record.facts
        view = await self._queue.segment(shard_of(facts.model), facts.segment)
        running = view is not None and bool(view.leased or view.ok or view.bad)
        return JobRecord(facts, running=running)

    def _new_id(self) -> str:
        return new_ordered_id("job", int(self._clock.now() * 1000))
