"""What removed batches and jobs had delivered, so that the bill can be made again without them.

``billed/<name>.jsonl`` has a line for each segment, durable before anything of its work goes. A
line names the epoch of Redis in which it was written: that one's meter has the segment.
"""

import asyncio
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import orjson

from gateway.core.usage import Usage
from gateway.core.work import RowOutcome, SegmentStatus
from gateway.store.batch_record import BatchRecord
from gateway.store.blobs import LocalBlobs, make_folder, sync_folder
from gateway.store.job_record import JobFacts
from gateway.store.rebuild import EndedSegment, HourSums, count_row

_FOLDER = "billed/"
_SUFFIX = ".jsonl"
_TERMINAL = frozenset({SegmentStatus.COMPLETED, SegmentStatus.CANCELLED, SegmentStatus.EXPIRED})


class Billed:
    """Appends and reads these lines; several processes may append at once."""

    def __init__(self, blobs: LocalBlobs) -> None:
        self._blobs = blobs

    async def note(self, name: str, epoch: str | None, work: Sequence[EndedSegment]) -> None:
        """Keep what is about to be removed; doing it again is harmless."""
        if work:
            lines = [orjson.dumps({"epoch": epoch, **asdict(ended)}) for ended in work]
            path = self._blobs.path(f"{_FOLDER}{name}{_SUFFIX}")
            await asyncio.to_thread(_append, path, lines)

    async def names(self, prefix: str = "") -> list[str]:
        """What was given as ``name``, as far as it begins so."""
        names = [
            blob.removeprefix(_FOLDER).removesuffix(_SUFFIX)
            for blob in await self._blobs.list(_FOLDER)
        ]
        return [name for name in names if name.startswith(prefix)]

    async def lost(self, name: str, epoch: str | None) -> list[EndedSegment]:
        """Each segment once that was noted under ``name`` in another epoch than this one."""
        path = self._blobs.path(f"{_FOLDER}{name}{_SUFFIX}")
        return await asyncio.to_thread(_read, path, epoch)


def ended_segments(record: BatchRecord) -> Iterator[EndedSegment]:
    """What the closed segments of a batch have delivered."""
    for segment in record.segments:
        end = record.segment_end(segment.segment)
        if end is not None and end.closing in _TERMINAL:
            yield EndedSegment(
                segment=segment.segment,
                job=record.id,
                tenant=record.facts.tenant,
                model=segment.model,
                rows=segment.rows,
                ok=end.ok,
                bad=end.bad,
                closing=end.closing,
                usage=end.usage,
                hours=end.hours,
            )


def ended_job(facts: JobFacts, hour: str, outcome: RowOutcome) -> EndedSegment:
    """What a job has delivered, in ``hour`` of the bill."""
    hours: HourSums = {}
    count_row(hours, hour, outcome.usage, ok=outcome.ok)
    return EndedSegment(
        segment=facts.segment,
        job=facts.id,
        tenant=facts.tenant,
        model=facts.model,
        rows=1,
        ok=int(outcome.ok),
        bad=int(not outcome.ok),
        closing=SegmentStatus.COMPLETED,
        usage=outcome.usage,
        hours=hours,
    )


def _append(path: Path, lines: Iterable[bytes]) -> None:
    """Begins with a newline: the line before may have been cut off."""
    make_folder(path.parent)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        left = memoryview(b"\n" + b"\n".join(lines) + b"\n")
        while left:
            left = left[os.write(descriptor, left) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    sync_folder(path.parent)


def _read(path: Path, epoch: str | None) -> list[EndedSegment]:
    found: dict[str, EndedSegment] = {}
    counted: set[str] = set()
    with path.open("rb") as file:
        for line in file:
            said = _said(line)
            if said is None:
                continue
            if said.pop("epoch") == epoch is not None:
                counted.add(said["segment"])
            else:
                found[said["segment"]] = _segment(said)
    return [ended for name, ended in found.items() if name not in counted]


def _said(line: bytes) -> dict[str, Any] | None:
    try:
        said: dict[str, Any] = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return said


def _segment(said: dict[str, Any]) -> EndedSegment:
    usage, closing = Usage(**said.pop("usage")), SegmentStatus(said.pop("closing"))
    return EndedSegment(**said, usage=usage, closing=closing)
