"""Result lines are on disk, and found by reference, before anybody commits them."""

import asyncio
import os
from pathlib import Path

import pytest

from gateway.core.errors import NotFound
from gateway.store.blobs import LocalBlobs
from gateway.store.job_files import part_blob
from gateway.store.parts import PartFiles, PartReader


async def test_lines_come_back_by_reference(tmp_path: Path) -> None:
    """Each reference gives exactly its line, over several appends and jobs."""
    parts = PartFiles(tmp_path)
    lines = [b'{"n":%d}\n' % n for n in range(10)]
    refs = await parts.append("a", lines[:4]) + await parts.append("a", lines[4:])
    other = await parts.append("b", [b"other\n"])
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
    refs = await asyncio.gather(*(writer.append("a", [b"x\n"]) for writer in writers))
    assert len({ref[0].part for ref in refs}) == 8
    for writer in writers:
        writer.close()


async def test_a_failed_write_starts_a_new_part(tmp_path: Path) -> None:
    """A disk error loses no line: references after it point into a fresh part."""
    parts = PartFiles(tmp_path)
    await parts.append("a", [b"first\n"])
    os.close(parts._open["a"]._descriptor)
    parts._open["a"]._descriptor = os.open(tmp_path, os.O_RDONLY)
    with pytest.raises(OSError, match="descriptor"):
        await parts.append("a", [b"lost\n"])
    ref = (await parts.append("a", [b"second\n"]))[0]
    reader = PartReader(tmp_path, "a")
    assert (ref.part, reader.read(ref.part, ref.offset, ref.length)) == (1, b"second\n")
    reader.close()
    parts.close()


async def test_removed_parts_are_not_written_to(tmp_path: Path) -> None:
    """After the parts of a job are gone, a late line gets a new part and old ones are an error."""
    parts = PartFiles(tmp_path)
    await parts.append("a", [b"x\n"])
    await LocalBlobs(tmp_path).delete("jobs/a/parts/")
    reader = PartReader(tmp_path, "a")
    with pytest.raises(NotFound):
        reader.read(0, 0, 2)
    ref = (await parts.append("a", [b"late\n"]))[0]
    assert reader.read(ref.part, ref.offset, ref.length) == b"late\n"
    with pytest.raises(NotFound):
        reader.read(ref.part, ref.offset, 50)
    reader.close()
    parts.close()


async def test_open_parts_are_bounded(tmp_path: Path) -> None:
    """A thousand jobs do not hold a thousand descriptors."""
    parts = PartFiles(tmp_path)
    for number in range(70):
        await parts.append(f"j{number}", [b"x\n"])
    assert len(parts._open) == 64
    parts.close()


async def test_a_job_has_a_file_for_its_line(tmp_path: Path) -> None:
    """Nothing stays open, no folder is made per job, and two results never share a file."""
    job = "job_0123456789ab0123456789ab"
    parts = PartFiles(tmp_path)
    first, second = [(await parts.append(job, [b"a\n"]))[0] for _ in range(2)]
    assert first.part != second.part
    for ref in (first, second):
        assert await LocalBlobs(tmp_path).read(part_blob(job, ref.part)) == b"a\n"
    assert not parts._open
    assert not (tmp_path / "jobs").exists()
