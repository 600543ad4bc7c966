"""Result lines are on disk, and found by reference, before anybody commits them."""

import asyncio
import os
from pathlib import Path

import pytest

from gateway.core.errors import NotFound
from gateway.core.usage import Usage
from gateway.store.blobs import LocalBlobs
from gateway.store.job_files import part_blob
from gateway.store.part_notes import PartNote
from gateway.store.parts import PartFiles, PartReader, delivered
from tests.support.segments import HOUR


def rows(*lines: bytes) -> list[tuple[PartNote, bytes]]:
    """Good rows from 0 on."""
    return [(PartNote(0, n, True, Usage(n, 1), HOUR), line) for n, line in enumerate(lines)]


async def test_lines_come_back_by_reference(tmp_path: Path) -> None:
    """Each reference gives exactly its line, over several appends and jobs."""
    parts = PartFiles(tmp_path)
    lines = [b'{"n":%d}\n' % n for n in range(10)]
    refs = await parts.append("a", rows(*lines[:4])) + await parts.append("a", rows(*lines[4:]))
    other = await parts.append("b", rows(b"other\n"))
    reader = PartReader(tmp_path, "a")
    assert [reader.read(r.part, r.offset, r.length) for r in refs] == lines
    reader.close()
    second = PartReader(tmp_path, "b")
    assert second.read(other[0].part, other[0].offset, other[0].length) == b"other\n"
    second.close()
    parts.close()


async def test_two_processes_never_share_a_part(tmp_path: Path) -> None:
    """The number is taken by creating the file, also at the same moment."""
    writers = [PartFiles(tmp_path) for _ in range(8)]
    refs = await asyncio.gather(*(writer.append("a", rows(b"x\n")) for writer in writers))
    assert len({ref[0].part for ref in refs}) == 8
    for writer in writers:
        writer.close()


async def test_a_failed_write_starts_a_new_part(tmp_path: Path) -> None:
    """A disk error loses no line: references after it point into a fresh part."""
    parts = PartFiles(tmp_path)
    await parts.append("a", rows(b"first\n"))
    os.close(parts._open["a"]._descriptor)
    parts._open["a"]._descriptor = os.open(tmp_path, os.O_RDONLY)
    with pytest.raises(OSError, match="descriptor"):
        await parts.append("a", rows(b"lost\n"))
    ref = (await parts.append("a", rows(b"second\n")))[0]
    reader = PartReader(tmp_path, "a")
    assert (ref.part, reader.read(ref.part, ref.offset, ref.length)) == (1, b"second\n")
    reader.close()
    parts.close()


async def test_removed_parts_are_not_written_to(tmp_path: Path) -> None:
    """After the parts of a job are gone, a late line gets a new part and old ones are an error."""
    parts = PartFiles(tmp_path)
    await parts.append("a", rows(b"x\n"))
    await LocalBlobs(tmp_path).delete("jobs/a/parts/")
    reader = PartReader(tmp_path, "a")
    with pytest.raises(NotFound):
        reader.read(0, 0, 2)
    ref = (await parts.append("a", rows(b"late\n")))[0]
    assert reader.read(ref.part, ref.offset, ref.length) == b"late\n"
    with pytest.raises(NotFound):
        reader.read(ref.part, ref.offset, 50)
    reader.close()
    parts.close()


async def test_open_parts_are_bounded(tmp_path: Path) -> None:
    """A thousand jobs do not hold a thousand descriptors."""
    parts = PartFiles(tmp_path)
    for number in range(70):
        await parts.append(f"j{number}", rows(b"x\n"))
    assert len(parts._open) == 64
    parts.close()


async def test_a_job_has_a_file_for_its_line(tmp_path: Path) -> None:
    """Nothing stays open, no folder is made per job, and two results never share a file."""
    job = "job_0123456789ab0123456789ab"
    parts = PartFiles(tmp_path)
    first, second = [(await parts.append(job, rows(b"a\n")))[0] for _ in range(2)]
    assert first.part != second.part
    for ref in (first, second):
        name, place = part_blob(job, ref.part), (ref.offset, ref.length)
        assert await LocalBlobs(tmp_path).read_ranges(name, [place]) == [b"a\n"]
    assert not parts._open
    assert not (tmp_path / "jobs").exists()


async def test_the_notes_say_what_was_delivered(tmp_path: Path) -> None:
    """Of a row that is there twice the first line counts; a line cut off at the end does not."""
    first, second = PartFiles(tmp_path), PartFiles(tmp_path)
    refs = await first.append("a", rows(b"one\n", b"two\n"))
    again = await second.append("a", rows(b"one again\n", b"x\n", b"three\n"))
    assert [(n.index, r) for n, r in delivered(tmp_path, "a")] == [
        (0, refs[0]),
        (1, refs[1]),
        (2, again[2]),
    ]
    path = tmp_path / "jobs" / "a" / "parts" / "1.jsonl"
    os.truncate(path, path.stat().st_size - 3)
    assert [note.index for note, _ in delivered(tmp_path, "a")] == [0, 1]
    assert list(delivered(tmp_path, "b")) == []
    reader = PartReader(tmp_path, "a")
    note = reader.note(refs[1].part, refs[1].offset, refs[1].length)
    assert note == PartNote(0, 1, True, Usage(1, 1), HOUR)
    assert reader.note(0, 5, 4) is None
    reader.close()
    first.close()
    second.close()
