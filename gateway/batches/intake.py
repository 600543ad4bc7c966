"""From ``validating`` to ``in_progress`` or ``failed``: done by dispatchers, one at a time each.

A claim in Redis lasts as long as a lease and is held on to while the input is read. When a
dispatcher dies another claims the batch again and comes to the same result: the file does not
change, segment names are fixed, and enqueuing a segment twice changes nothing.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from gateway.batches.by_hand import set_batch_again
from gateway.batches.ingest import IngestRequest, Summary
from gateway.batches.ingest_run import BROKEN, run_ingest
from gateway.batches.lines import EXPIRED
from gateway.batches.ordering import tokens_column
from gateway.batches.recovered import restore, results_of
from gateway.batches.service import stop_segments
from gateway.batches.states import at, before
from gateway.core.clock import Clock
from gateway.core.errors import HeadwayError, RateLimited
from gateway.core.loops import keep_doing
from gateway.core.work import Quota, SegmentSpec
from gateway.schemas.batch import BatchStatus, Counts
from gateway.store.batch_record import BatchFacts, BatchRecord, Change, PlannedSegment
from gateway.store.batches import BatchStore, index_name, input_name
from gateway.store.blobs import LocalBlobs
from gateway.store.controls import Controls
from gateway.store.keys import shard_of
from gateway.store.queue import QueueClient

log = logging.getLogger(__name__)

_HOLDS_PER_CLAIM = 4
_POLL_SECONDS = 0.2
_TRIES = 3


@dataclass(frozen=True, slots=True)
class IntakeRule:
    """How long a claim lasts, what a tenant may have queued, and when a bad file is read again."""

    claim_ms: int = 60_000
    quota: Callable[[str], Quota] = lambda _: Quota()
    retry_seconds: float = 1.0


_RULE = IntakeRule()
_TOO_LATE = "The input file could not be validated before the completion window expired."
_UNREADABLE = "The input file could not be validated: each time it was read, that broke down."


class Intake:
    """Claims batches that wait for validation and gets them into the queue."""

    def __init__(
        self,
        batches: BatchStore,
        blobs: LocalBlobs,
        queue: QueueClient,
        models: Collection[str],
        clock: Clock,
        rule: IntakeRule = _RULE,
    ) -> None:
        self._batches = batches
        self._blobs = blobs
        self._controls = Controls(blobs)
        self._queue = queue
        self._models = frozenset(models)
        self._clock = clock
        self._claim_ms = rule.claim_ms
        self._quota = rule.quota
        self._retry_seconds = rule.retry_seconds

    async def run(self) -> None:
        """Take batches until cancelled; a fault of one batch or of the store is no end."""
        await keep_doing(self.step, "intake", every=_POLL_SECONDS, busy=True)

    async def step(self) -> bool:
        """Take one batch as far as it goes; False when none waits."""
        batch_id = await self._batches.claim_intake(self._claim_ms)
        if batch_id is None:
            return False
        holder = asyncio.create_task(self._hold(batch_id))
        try:
            await self._take(batch_id)
        finally:
            holder.cancel()
            with suppress(asyncio.CancelledError):
                await holder
        await self._batches.end_intake(batch_id)
        return True

    async def _take(self, batch_id: str) -> None:
        record = await self._batches.load(batch_id)
        if record is not None and record.status is BatchStatus.VALIDATING:
            record = await self._validate(record)
        if record is not None and record.status is BatchStatus.IN_PROGRESS:
            await self._start(record)
            # a cancel may have come between: either it saw the segments or we see it
            record = await self._batches.load(batch_id)
        if record is not None and record.status is BatchStatus.CANCELLING:
            await self._cancel(record)

    async def _validate(self, record: BatchRecord) -> BatchRecord | None:
        summary = await self._summary(record.facts)
        segments = tuple(
            PlannedSegment(f"{record.id}.{place}", planned.model, planned.rows)
            for place, planned in enumerate(summary.segments)
        )
        errors = summary.errors or await self._reserve(record.facts, segments)
        if errors:
            to = BatchStatus.FAILED
            change = Change({at(to): self._now()}, errors=errors)
        else:
            to = BatchStatus.IN_PROGRESS
            change = Change({at(to): self._now()}, segments, counts=Counts(summary.rows))
            await self._batches.mark_plan(record.id, change)
        was = await self._batches.move(record.id, before(to), to, change)
        if to is BatchStatus.FAILED or was not in before(to):
            await self._give_up(segments)
        after = await self._batches.load(record.id)
        if after is not None and after.status is BatchStatus.FAILED:
            await self._batches.save_final(record.id)
            await self._batches.remove_work(record.id, 0)
        return after

    async def _summary(self, facts: BatchFacts) -> Summary:
        """What is found in the input.

        It is a fault when reading it broke down thrice, or cannot be done until the window is over.
        """
        for tries in range(_TRIES):
            await asyncio.sleep(tries * self._retry_seconds)
            try:
                return await run_ingest(self._ingest_request(facts))
            except HeadwayError as error:
                log.exception("%s could not be validated", facts.id)
                if self._clock.now() >= facts.expires_at:
                    return _fault(EXPIRED, _TOO_LATE)
                if error.code != BROKEN:
                    raise
        return _fault("invalid_file", _UNREADABLE)

    async def _reserve(
        self, facts: BatchFacts, segments: Sequence[PlannedSegment]
    ) -> tuple[dict[str, Any], ...]:
        """Enqueue the segments, held; the fault when they are more than the tenant may queue."""
        quota = self._quota(facts.tenant)
        try:
            for segment in segments:
                spec = replace(await self._spec(facts, segment), held=True)
                await self._queue.enqueue(shard_of(segment.model), spec, quota)
        except RateLimited as error:
            return ({"code": error.code, "line": None, "message": error.message, "param": None},)
        return ()

    async def _give_up(self, segments: Sequence[PlannedSegment]) -> None:
        """Forget segments that will not be started."""
        for segment in segments:
            await self._queue.discard(shard_of(segment.model), segment.segment)

    async def _start(self, record: BatchRecord) -> None:
        """Start the segments; those that were lost are made again."""
        await self._make_again(record)
        await set_batch_again(self._controls, self._queue, record)
        for segment in record.segments:
            await self._queue.start(shard_of(segment.model), segment.segment)
        log.info("%s: %d segments started", record.id, len(record.segments))

    async def _make_again(self, record: BatchRecord) -> None:
        """Add the segments that are not there, held, with what is done of them."""
        done = await results_of(self._blobs.root, record.id)
        for segment in record.segments:
            spec = replace(await self._spec(record.facts, segment), held=True)
            if rows := done.get(segment.segment):
                await restore(self._queue, spec, rows)
            else:
                await self._queue.enqueue(shard_of(segment.model), spec)

    async def _spec(self, facts: BatchFacts, segment: PlannedSegment) -> SegmentSpec:
        index = await self._blobs.read(index_name(segment.segment))
        return SegmentSpec(
            segment=segment.segment,
            job=facts.id,
            tenant=facts.tenant,
            model=segment.model,
            tokens=tokens_column(index),
            window_ms=max(1, int(1000 * (facts.expires_at - self._clock.now()))),
            input_ref=input_name(facts.id),
            index_ref=index_name(segment.segment),
            endpoint=facts.endpoint,
            weight=facts.weight,
        )

    async def _cancel(self, record: BatchRecord) -> None:
        """Cancelled before it ran: at its end now. Else its segments are closed by the queue."""
        if record.segments:
            await self._make_again(record)  # one that was lost is closed too, and gets its lines
            await stop_segments(record, self._queue)
            return
        to = BatchStatus.CANCELLED
        await self._batches.move(record.id, before(to), to, Change({at(to): self._now()}))
        await self._batches.save_final(record.id)
        await self._batches.remove_work(record.id, 0)

    async def _hold(self, batch_id: str) -> None:
        while True:
            await asyncio.sleep(self._claim_ms / 1000 / _HOLDS_PER_CLAIM)
            with suppress(HeadwayError):
                await self._batches.hold_intake(batch_id, self._claim_ms)

    def _ingest_request(self, facts: BatchFacts) -> IngestRequest:
        models = self._models if facts.models is None else self._models & set(facts.models)
        source = self._blobs.path(input_name(facts.id))
        return IngestRequest(str(source), str(source.parent), facts.endpoint, tuple(sorted(models)))

    def _now(self) -> int:
        return int(self._clock.now())


def _fault(code: str, message: str) -> Summary:
    return Summary(0, (), ({"code": code, "line": None, "message": message, "param": None},))
