"""The lines of a closed segment: results from the part files, and a line for each row not run."""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from gateway.batches.lines import custom_id_in, unexecuted_line
from gateway.batches.ordering import ROW
from gateway.batches.table import REF, LineTable
from gateway.store.blobs import BlobWriter, LocalBlobs
from gateway.store.parts import PartReader
from gateway.store.rebuild import HourSums, count_row

_LINES_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class ClosedSegment:
    """What there is of a segment that takes no more results.

    ``done`` and ``good`` have one bit per row, highest bit first, and may be short; ``refs`` has a
    packed PartRef per row; ``code`` is the error code of rows that were not run.
    """

    job: str
    segment: str
    source: Path
    index: bytes
    done: bytes
    good: bytes
    refs: bytes
    code: str


@dataclass(frozen=True, slots=True)
class Written:
    """How many lines went to each file, and what their notes add up to by hour of the bill."""

    output: int
    error: int
    hours: HourSums


@dataclass(frozen=True, slots=True)
class LineNames:
    """Blob names of the two files of a segment and of the table of its rows."""

    output: str
    error: str
    table: str


async def write_lines(blobs: LocalBlobs, closed: ClosedSegment, names: LineNames) -> Written:
    """Write the two files and the table; a file without lines is not made.

    Raises NotFound when a part is gone.
    """
    files = {True: _Lines(blobs, names.output), False: _Lines(blobs, names.error)}
    table = LineTable(len(closed.index) // ROW.size)
    hours: HourSums = {}
    with ExitStack() as stack:
        reader = PartReader(blobs.root, closed.job)
        stack.callback(reader.close)
        lines = _lines(closed, reader, table, hours)
        try:
            while some := await asyncio.to_thread(lambda: list(islice(lines, _LINES_AT_ONCE))):
                for ok, file in files.items():
                    await file.add([line for good, line in some if good is ok])
            for file in files.values():
                await file.finish()
        finally:
            for file in files.values():
                await file.abort()
    await blobs.put(names.table, table.packed())
    return Written(files[True].count, files[False].count, hours)


class _Lines:
    """A file that exists only if it has lines."""

    def __init__(self, blobs: LocalBlobs, name: str) -> None:
        self._blobs = blobs
        self._name = name
        self._writer: BlobWriter | None = None
        self.count = 0

    async def add(self, lines: list[bytes]) -> None:
        if not lines:
            return
        if self._writer is None:
            self._writer = await self._blobs.create(self._name)
        await self._writer.write(b"".join(lines))
        self.count += len(lines)

    async def finish(self) -> None:
        if self._writer is not None:
            await self._writer.finish()

    async def abort(self) -> None:
        if self._writer is not None:
            await self._writer.abort()


def _lines(
    closed: ClosedSegment, reader: PartReader, table: LineTable, hours: HourSums
) -> Iterator[tuple[bool, bytes]]:
    """(belongs to the output file, line) of every row once, in the order of the input."""
    for place, good, line in _rows(closed, reader, hours):
        table.add(place, line, good=good)
        yield good, line


def _rows(
    closed: ClosedSegment, reader: PartReader, hours: HourSums
) -> Iterator[tuple[int, bool, bytes]]:
    rows = list(ROW.iter_unpack(closed.index))
    with closed.source.open("rb") as source:
        for place in sorted(range(len(rows)), key=lambda at: rows[at][0]):
            if _bit(closed.done, place):
                ref = REF.unpack_from(closed.refs, place * REF.size)
                note = reader.note(*ref)
                if note is not None:
                    count_row(hours, note.hour, note.usage, ok=note.ok)
                yield place, _bit(closed.good, place), reader.read(*ref)
            else:
                source.seek(rows[place][0])
                custom_id = custom_id_in(source.read(rows[place][1]))
                line = unexecuted_line(closed.segment, place, custom_id, closed.code)
                yield place, False, line


def _bit(bits: bytes, place: int) -> bool:
    at = place >> 3
    return at < len(bits) and bool(bits[at] & (0x80 >> (place & 7)))
