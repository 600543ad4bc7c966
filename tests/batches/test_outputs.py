"""Lines of a closed segment: from parts where there is a result, made where there is none."""

import struct
from pathlib import Path

import orjson
import pytest

from gateway.batches.ordering import IndexRow, packed
from gateway.batches.outputs import ClosedSegment, LineNames, write_lines
from gateway.batches.table import refs
from gateway.core.errors import NotFound
from gateway.core.usage import Usage
from gateway.store.blobs import LocalBlobs
from gateway.store.part_notes import PartNote
from gateway.store.parts import PartFiles
from tests.support.segments import HOUR

NAMES = LineNames("jobs/j/o", "jobs/j/e", "jobs/j/t")


async def _segment(blobs: LocalBlobs, rows: int, done: set[int], bad: set[int]) -> ClosedSegment:
    lines = [orjson.dumps({"custom_id": f"c{n}"}) + b"\n" for n in range(rows)]
    await blobs.put("jobs/j/input", b"".join(lines))
    size = len(lines[0])
    index = packed([IndexRow(n * size, size - 1, 1, 0) for n in reversed(range(rows))])
    parts = PartFiles(blobs.root)
    refs, bits, good = b"", bytearray(2), bytearray(2)
    for place in range(rows):
        note = PartNote(0, place, place not in bad, Usage(place, 1), HOUR)
        (ref,) = await parts.append("j", [(note, b"line %d\n" % (rows - 1 - place))])
        refs += struct.pack("<IQI", ref.part, ref.offset, ref.length)
        if place in done:
            bits[place >> 3] |= 0x80 >> (place & 7)
        if place in done - bad:
            good[place >> 3] |= 0x80 >> (place & 7)
    parts.close()
    source = blobs.path("jobs/j/input")
    return ClosedSegment("j", "j.0", source, index, bytes(bits), bytes(good), refs, "batch_expired")


async def test_each_row_once_in_input_order(tmp_path: Path) -> None:
    """Dispatch order is not file order; bad and missing rows go to the error file."""
    blobs = LocalBlobs(tmp_path)
    closed = await _segment(blobs, 10, done=set(range(8)), bad={3})
    written = await write_lines(blobs, closed, NAMES)
    assert (written.output, written.error) == (7, 3)
    figures = {"requests": 8, "failed": 1, "prompt": 28, "completion": 8}
    assert written.hours == {HOUR: figures | {"cached": 0, "reasoning": 0}}
    output = (await blobs.read("jobs/j/o")).decode().splitlines()
    assert output == [f"line {n}" for n in (2, 3, 4, 5, 7, 8, 9)]
    error = (await blobs.read("jobs/j/e")).decode().splitlines()
    assert [orjson.loads(line)["custom_id"] for line in error[:2]] == ["c0", "c1"]
    assert error[2] == "line 6"
    (*_, last) = refs((await blobs.read("jobs/j/t"))[16:])
    [line] = await blobs.read_ranges("jobs/j/e", [(last.offset, last.length)])
    assert (last.part, orjson.loads(line)["custom_id"]) == (1, "c0")


async def test_a_file_without_lines_is_not_made(tmp_path: Path) -> None:
    """No row failed: no error file."""
    blobs = LocalBlobs(tmp_path)
    closed = await _segment(blobs, 3, done={0, 1, 2}, bad=set())
    await write_lines(blobs, closed, NAMES)
    assert await blobs.size("jobs/j/e") is None


async def test_a_missing_part_writes_nothing(tmp_path: Path) -> None:
    """A finaliser that came too late, after parts were removed, leaves no half file."""
    blobs = LocalBlobs(tmp_path)
    closed = await _segment(blobs, 3, done={0, 1, 2}, bad=set())
    await blobs.delete("jobs/j/parts/")
    with pytest.raises(NotFound):
        await write_lines(blobs, closed, NAMES)
    assert await blobs.size("jobs/j/o") is None
