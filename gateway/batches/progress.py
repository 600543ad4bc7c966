"""Live figures of a batch: the sum over its segments."""

import asyncio

from gateway.core.usage import Usage
from gateway.schemas.batch import Counts
from gateway.store.batch_record import BatchRecord, PlannedSegment
from gateway.store.keys import shard_of
from gateway.store.queue import QueueClient


async def with_progress(record: BatchRecord, queue: QueueClient) -> BatchRecord:
    """``record`` with the counts and usage of now; a batch that has ended keeps its own."""
    if record.ended or not record.segments:
        return record
    sums = await asyncio.gather(*(_segment(record, s, queue) for s in record.segments))
    counts = Counts(
        sum(segment.rows for segment in record.segments),
        sum(ok for ok, _, _ in sums),
        sum(bad for _, bad, _ in sums),
    )
    return record.with_progress(counts, sum((usage for _, _, usage in sums), Usage()))


async def _segment(
    record: BatchRecord, segment: PlannedSegment, queue: QueueClient
) -> tuple[int, int, Usage]:
    end = record.segment_end(segment.segment)
    if end is not None:
        return end.ok, end.bad, end.usage
    view = await queue.segment(shard_of(segment.model), segment.segment)
    if view is None:
        return 0, 0, Usage()
    return view.ok, view.bad, view.usage
