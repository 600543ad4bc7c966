"""Results that the part files of a batch hold, and their way back into the queue."""

import asyncio
import logging
from collections import defaultdict
from pathlib import Path

from gateway.core.work import RowOutcome, SegmentSpec
from gateway.store.keys import shard_of
from gateway.store.parts import delivered
from gateway.store.queue import QueueClient

log = logging.getLogger(__name__)

_NO_LEASE = ""
ByHour = dict[str, list[RowOutcome]]


async def results_of(root: Path, job: str) -> dict[str, ByHour]:
    """What was delivered: segment -> hour of the bill -> rows. Empty for a batch that never ran."""
    return await asyncio.to_thread(_read, root, job)


async def restore(queue: QueueClient, spec: SegmentSpec, done: ByHour) -> None:
    """Let the queue know ``done``: in a segment that it lost, or in one that is behind.

    A segment is behind when its server lost the last commits: those are committed again, which
    changes nothing for a row that the queue has.
    """
    shard = shard_of(spec.model)
    if await queue.rebuild(shard, spec, done):
        rows = sum(map(len, done.values()))
        log.warning("%s: made again, %d of %d rows were done", spec.segment, rows, spec.rows)
        return
    for hour, outcomes in done.items():
        answer = await queue.commit(shard, _NO_LEASE, spec.segment, outcomes, hour)
        if answer.fresh:
            log.warning("%s: %d rows were done and not committed", spec.segment, answer.fresh)


def _read(root: Path, job: str) -> dict[str, ByHour]:
    found: dict[str, ByHour] = {}
    for note, ref in delivered(root, job):
        hours = found.setdefault(f"{job}.{note.place}", defaultdict(list))
        hours[note.hour].append(RowOutcome(note.index, ref, note.usage, note.ok))
    return found
