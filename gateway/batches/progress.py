"""Live figures of a batch: the sum over its segments."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from gateway.batches.forecast import is_late, warning
from gateway.core.usage import Usage
from gateway.schemas.batch import BatchStatus, Counts, Outlook
from gateway.store.batch_record import BatchRecord, PlannedSegment
from gateway.store.keys import shard_of
from gateway.store.outlook import UNKNOWN, Forecast
from gateway.store.queue import QueueClient


async def with_progress(record: BatchRecord, queue: QueueClient) -> BatchRecord:
    """``record`` with the figures of now; a batch that has ended keeps its own."""
    if record.ended or not record.segments:
        return record
    sums = await asyncio.gather(*(_segment(record, s, queue) for s in record.segments))
    counts = Counts(
        sum(segment.rows for segment in record.segments),
        sum(part.ok for part in sums),
        sum(part.bad for part in sums),
    )
    usage = sum((part.usage for part in sums), Usage())
    outlook = None
    if record.status is BatchStatus.IN_PROGRESS:
        outlook = outlook_of([part for part in sums if part.deadline_ms])
    return record.with_progress(counts, usage, outlook)


@dataclass(frozen=True, slots=True)
class Progress:
    """Of one segment. ``deadline_ms`` is 0 when nothing of it is left to do."""

    ok: int = 0
    bad: int = 0
    usage: Usage = field(default_factory=Usage)
    deadline_ms: int = 0
    forecast: Forecast = UNKNOWN


def outlook_of(parts: Sequence[Progress]) -> Outlook:
    """For a batch with these open segments: done with its last one, late with any."""
    etas = [part.forecast.eta_ms for part in parts]
    known = [eta for eta in etas if eta is not None]
    rate = sum(part.forecast.rate for part in parts)
    late = [part for part in parts if is_late(part.forecast, part.deadline_ms)]
    worst = max(late, key=lambda part: part.forecast.eta_ms or 0, default=None)
    return Outlook(
        eta=-(-max(known) // 1000) if known and len(known) == len(etas) else None,
        rows_per_second=round(rate, 3) or None,
        deadline_at_risk=bool(late),
        warning=warning(worst.forecast, worst.deadline_ms) if worst else None,
        paused=bool(parts) and all(part.forecast.paused for part in parts),
    )


async def _segment(record: BatchRecord, segment: PlannedSegment, queue: QueueClient) -> Progress:
    end = record.segment_end(segment.segment)
    if end is not None:
        return Progress(end.ok, end.bad, end.usage)
    shard = shard_of(segment.model)
    view = await queue.segment(shard, segment.segment)
    if view is None:
        return Progress()
    if view.ok + view.bad == view.n:
        return Progress(view.ok, view.bad, view.usage)
    forecast = await queue.forecast(shard, segment.segment) or UNKNOWN
    return Progress(view.ok, view.bad, view.usage, view.deadline_ms, forecast)
