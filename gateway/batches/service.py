"""What a client can do with batches. No HTTP, no Redis commands."""

import asyncio
import hashlib
import logging

from gateway.batches.progress import with_progress
from gateway.batches.states import at, before
from gateway.core.clock import Clock
from gateway.core.errors import Conflict, InvalidRequest, NotFound
from gateway.core.ids import new_ordered_id
from gateway.schemas.batch import BatchCreate, BatchStatus
from gateway.schemas.file import BATCH
from gateway.schemas.lists import PageRequest
from gateway.store.batch_record import BatchFacts, BatchRecord, Change
from gateway.store.batches import BatchStore
from gateway.store.files import FileStore, data_name
from gateway.store.job_commands import IdempotencyClaim, key_digest
from gateway.store.keys import shard_of
from gateway.store.queue import QueueClient
from gateway.store.room import RECORD_BYTES
from gateway.tenancy.keys import Caller

log = logging.getLogger(__name__)

CANCEL_GRACE_MS = 10_000
_LONGEST_KEY = 255


class BatchService:
    """Create, read, list and cancel. Every call names who asks; foreign batches are not there."""

    def __init__(
        self, batches: BatchStore, files: FileStore, queue: QueueClient, clock: Clock
    ) -> None:
        self._batches = batches
        self._files = files
        self._queue = queue
        self._clock = clock

    async def create(
        self, caller: Caller, request: BatchCreate, idempotency_key: str | None = None
    ) -> BatchRecord:
        """Accept a batch; it is safe on disk when this returns.

        Raises NotFound for a file that is not the caller's, InvalidRequest for a wrong purpose,
        StoreFull when no new work is taken, Conflict when the idempotency key came with another
        request in the last 24 h.
        """
        if idempotency_key is not None:
            return await self._create_once(caller, request, idempotency_key)
        return await self._create(caller, request, self._new_id())

    async def get(self, caller: Caller, batch_id: str) -> BatchRecord:
        """The batch with live counts. Raises NotFound."""
        record = await self._batches.get(caller.tenant, batch_id)
        return await with_progress(record, self._queue)

    async def page(self, caller: Caller, page: PageRequest) -> tuple[list[BatchRecord], bool]:
        """A page, newest first, and whether more follow."""
        records, has_more = await self._batches.page(caller.tenant, page.limit, page.after)
        live = await asyncio.gather(*(with_progress(record, self._queue) for record in records))
        return list(live), has_more

    async def cancel(self, caller: Caller, batch_id: str) -> BatchRecord:
        """Begin to cancel; again on a batch that is or was cancelled changes nothing.

        Rows in flight are aborted, finished rows stay. Raises Conflict when the batch has ended
        otherwise.
        """
        await self._batches.get(caller.tenant, batch_id)
        now = int(self._clock.now())
        to = BatchStatus.CANCELLING
        change = Change(times={at(to): now})
        was = await self._batches.move(batch_id, before(to), to, change)
        if was not in {*before(to), to, BatchStatus.CANCELLED, None}:
            raise Conflict(
                f"A batch that is {was} cannot be cancelled.", code="batch_not_cancellable"
            )
        record = await self._batches.get(caller.tenant, batch_id)
        if record.status is to:
            await self._batches.mark_cancel(batch_id, record.times.get(at(to), now))
        await stop_segments(record, self._queue)
        return await with_progress(record, self._queue)

    async def _create_once(
        self, caller: Caller, request: BatchCreate, idempotency_key: str
    ) -> BatchRecord:
        if not 0 < len(idempotency_key) <= _LONGEST_KEY:
            raise InvalidRequest(f"idempotency-key has at most {_LONGEST_KEY} characters.")
        wanted = IdempotencyClaim(self._new_id(), _digest(request))
        claim = await self._batches.held_key(caller.tenant, idempotency_key)
        if claim is None:
            await self._checked_input(caller, request)
            claim = await self._batches.claim_key(caller.tenant, idempotency_key, wanted)
        if claim.digest != wanted.digest:
            raise Conflict(
                "This idempotency key was used for another request.",
                code="idempotency_key_reused",
            )
        known = await self._batches.load(claim.batch_id)
        if known is None:  # lost from Redis, or never made
            known = await self._batches.put_back(claim.batch_id)
        if known is not None:
            return await with_progress(known, self._queue)
        kept = (key_digest(idempotency_key), claim.digest)
        return await self._create(caller, request, claim.batch_id, kept)

    async def _create(
        self,
        caller: Caller,
        request: BatchCreate,
        batch_id: str,
        idempotency: tuple[str, str] | None = None,
    ) -> BatchRecord:
        await self._files.room.take(RECORD_BYTES)
        await self._checked_input(caller, request)
        now = int(self._clock.now())
        facts = BatchFacts(
            id=batch_id,
            tenant=caller.tenant,
            key_id=caller.key_id,
            endpoint=request.endpoint,
            input_file_id=request.input_file_id,
            completion_window=request.window,
            created_at=now,
            expires_at=now + request.window_seconds,
            metadata=request.metadata,
            output_seconds=request.output_seconds,
            weight=caller.weight,
            models=None if caller.models is None else tuple(sorted(caller.models)),
            idempotency=idempotency,
        )
        blob = data_name(caller.tenant, request.input_file_id)
        return await self._batches.create(facts, blob)

    async def _checked_input(self, caller: Caller, request: BatchCreate) -> None:
        try:
            record = await self._files.get(caller.tenant, request.input_file_id)
        except NotFound as error:
            raise NotFound(error.message, param="input_file_id") from None
        if record.purpose != BATCH:
            raise InvalidRequest(
                f"The file has the purpose '{record.purpose}', it must be '{BATCH}'.",
                param="input_file_id",
                code="invalid_value",
            )

    def _new_id(self) -> str:
        return new_ordered_id("batch", int(self._clock.now() * 1000))


async def stop_segments(record: BatchRecord, queue: QueueClient) -> None:
    """Cancel the segments of a batch that is ``cancelling``; others are left alone."""
    if record.status is BatchStatus.CANCELLING:
        for segment in record.segments:
            await queue.cancel(shard_of(segment.model), segment.segment, CANCEL_GRACE_MS)


def _digest(request: BatchCreate) -> str:
    return hashlib.sha256(repr(request).encode()).hexdigest()
