"""From closed segments to output and error files, and to the final state of the batch.

A segment that takes no more results is claimed under a fence. Its lines are written, that is
noted in the record, and whoever finds all segments of a batch noted publishes: files first, then
the final state by one compare-and-set. File ids and contents follow from the record alone, so
doing any step twice, here or in another dispatcher, gives the same files and never a second pair.
"""

from gateway.batches.lines import CANCELLED, EXPIRED
from gateway.batches.outputs import ClosedSegment, LineNames, write_lines
from gateway.batches.publish import Publisher
from gateway.core.clock import Clock
from gateway.core.work import FinishClaim, SegmentStatus
from gateway.schemas.batch import BatchStatus
from gateway.store.batch_record import BatchRecord, Change, SegmentEnd
from gateway.store.batches import BatchStore, index_name, input_name, lines_name, table_name
from gateway.store.blobs import LocalBlobs
from gateway.store.queue import QueueClient

_TERMINAL = frozenset({SegmentStatus.COMPLETED, SegmentStatus.CANCELLED, SegmentStatus.EXPIRED})
_CODES = {SegmentStatus.CANCELLED: CANCELLED, SegmentStatus.EXPIRED: EXPIRED}


class Finalizer:
    """Finishes segments of batches."""

    def __init__(
        self,
        batches: BatchStore,
        blobs: LocalBlobs,
        queue: QueueClient,
        publisher: Publisher,
        clock: Clock,
    ) -> None:
        self._batches = batches
        self._blobs = blobs
        self._queue = queue
        self._publisher = publisher
        self._clock = clock

    async def take(self, shard: str, claim: FinishClaim) -> None:
        """Write the lines of a claimed segment; with the last one of a batch, publish it."""
        record = await self._batches.settled_or_live(claim.job)
        if record is None or record.status is BatchStatus.VALIDATING:
            # lost from Redis: the reconciler puts it back, and the claim runs out meanwhile
            return
        if not record.ended:
            record = await self._close(shard, claim, record)
        if record is None or not (record.ended or record.segment_end(claim.segment)):
            return
        if _all_closed(record) and not record.ended:
            await self._publisher.publish(record)
        if await self._queue.finish_commit(shard, claim.segment, claim.fence):
            await self._clean(claim.job)

    async def _close(
        self, shard: str, claim: FinishClaim, record: BatchRecord
    ) -> BatchRecord | None:
        """Write the segment's lines and note it. None: another has finished it meanwhile."""
        others = [s for s in record.segments if s.segment != claim.segment]
        if all(record.segment_end(s.segment) for s in others):
            await self._enter_finalizing(record)
        done, refs = await self._queue.refs(shard, claim.segment)
        good = await self._queue.good(shard, claim.segment)
        view = await self._queue.segment(shard, claim.segment)
        if view is None or view.status in _TERMINAL:
            return None
        closed = ClosedSegment(
            job=record.id,
            segment=claim.segment,
            source=self._blobs.path(input_name(record.id)),
            index=await self._blobs.read(index_name(claim.segment)),
            done=done,
            good=good,
            refs=refs,
            code=_CODES.get(view.closing, EXPIRED),
        )
        names = LineNames(
            lines_name(claim.segment, "output"),
            lines_name(claim.segment, "error"),
            table_name(claim.segment),
        )
        written = await write_lines(self._blobs, closed, names)
        end = SegmentEnd(written.output, written.error, view.closing, view.usage, written.hours)
        await self._batches.close_segment(record.id, claim.segment, end)
        return await self._batches.load(record.id)

    async def _enter_finalizing(self, record: BatchRecord) -> None:
        begun = await self._batches.finalizing_at(record.id, int(self._clock.now()))
        change = Change({"finalizing_at": begun})
        await self._batches.move(
            record.id, (BatchStatus.IN_PROGRESS,), BatchStatus.FINALIZING, change
        )

    async def _clean(self, batch_id: str) -> None:
        record = await self._batches.load(batch_id)
        if record is not None and record.ended:
            await self._batches.remove_work(batch_id, len(record.segments))


def _all_closed(record: BatchRecord) -> bool:
    return all(record.segment_end(segment.segment) for segment in record.segments)
