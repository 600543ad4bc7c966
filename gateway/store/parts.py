"""Part files: result lines of running batches, on disk before they are committed.

A part belongs to one job and one process: ``jobs/<job>/parts/<number>.jsonl``. Lines are only
ever appended, each behind a note (see ``part_notes``) that says whose it is. While the queue
stands, a line nobody committed is garbage that no reference points at; after the queue was lost,
the first line of each row is its result.
"""

import asyncio
import os
import secrets
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from pathlib import Path

from gateway.core.errors import NotFound
from gateway.core.work import PartRef
from gateway.store.blobs import make_folder, sync_folder
from gateway.store.job_files import is_job, part_blob
from gateway.store.part_notes import NOTE_BYTES, PartNote, noted, scan, split

_MOST_OPEN = 64
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND


class PartFiles:
    """The parts this process writes, at most one per job."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._open: OrderedDict[str, _Part] = OrderedDict()
        self._lock = threading.Lock()

    async def append(self, job: str, lines: Sequence[tuple[PartNote, bytes]]) -> list[PartRef]:
        """Write complete lines (each ends with a newline), fsync once, say where they lie.

        Raises OSError when the disk refuses; the next append then starts a new part.
        """
        append = self._append_single if is_job(job) else self._append
        return await asyncio.to_thread(append, job, lines)

    def close(self) -> None:
        """Close every part."""
        with self._lock:
            while self._open:
                self._open.popitem()[1].close()

    def _append(self, job: str, lines: Sequence[tuple[PartNote, bytes]]) -> list[PartRef]:
        with self._lock:
            part = self._part(job)
            try:
                return part.append(lines)
            except OSError:
                self._open.pop(job).close()
                raise

    def _append_single(self, job: str, lines: Sequence[tuple[PartNote, bytes]]) -> list[PartRef]:
        """A fresh file without lock or list: nobody else has its number."""
        number = secrets.randbits(32)
        path = self._root / part_blob(job, number)
        make_folder(path.parent)
        descriptor = os.open(path, _NEW, 0o600)
        try:
            refs = _write(descriptor, number, 0, lines)
        finally:
            os.close(descriptor)
        sync_folder(path.parent)
        return refs

    def _part(self, job: str) -> "_Part":
        part = self._open.get(job)
        if part is None or part.is_gone():
            part = _Part(self._root / "jobs" / job / "parts")
            self._open[job] = part
        self._open.move_to_end(job)
        while len(self._open) > _MOST_OPEN:
            self._open.popitem(last=False)[1].close()
        return part


class _Part:
    """One open part; its number is taken by creating the file."""

    def __init__(self, folder: Path) -> None:
        make_folder(folder)
        taken = [int(path.stem) for path in folder.glob("*.jsonl")]
        self.number = max(taken, default=-1) + 1
        while True:
            try:
                self._descriptor = os.open(_path(folder, self.number), _NEW, 0o600)
                break
            except FileExistsError:
                self.number += 1
        sync_folder(folder)
        self._end = 0

    def append(self, lines: Sequence[tuple[PartNote, bytes]]) -> list[PartRef]:
        refs = _write(self._descriptor, self.number, self._end, lines)
        self._end += sum(NOTE_BYTES + len(line) for _, line in lines)
        return refs

    def is_gone(self) -> bool:
        """Whether the job was finalised and its parts removed."""
        return os.fstat(self._descriptor).st_nlink == 0

    def close(self) -> None:
        os.close(self._descriptor)


class PartReader:
    """Reads lines of one job's parts. Blocking: for use in a thread."""

    def __init__(self, root: Path, job: str) -> None:
        self._folder = root / "jobs" / job / "parts"
        self._open: dict[int, int] = {}

    def read(self, part: int, offset: int, length: int) -> bytes:
        """The line at that place. Raises NotFound when the part is gone or too short."""
        line = os.pread(self._descriptor(part), length, offset)
        if len(line) != length:
            raise NotFound(f"Part {part} is shorter than it should be.")
        return line

    def note(self, part: int, offset: int, length: int) -> PartNote | None:
        """The note of the line at that place; None when it has none."""
        start = offset - NOTE_BYTES
        if start < 0:
            return None
        found = split(os.pread(self._descriptor(part), NOTE_BYTES + length, start))
        return None if found is None else found[0]

    def _descriptor(self, part: int) -> int:
        if part not in self._open:
            try:
                self._open[part] = os.open(_path(self._folder, part), os.O_RDONLY)
            except FileNotFoundError:
                raise NotFound(f"Part {part} is gone.") from None
        return self._open[part]

    def close(self) -> None:
        """Close what was opened."""
        while self._open:
            os.close(self._open.popitem()[1])


def part_name(job: str, number: int) -> str:
    """Blob name of a part."""
    return f"jobs/{job}/parts/{number}.jsonl"


def _write(
    descriptor: int, number: int, end: int, lines: Sequence[tuple[PartNote, bytes]]
) -> list[PartRef]:
    """Append to a part that ends at ``end``, durably."""
    refs = []
    for _, line in lines:
        refs.append(PartRef(number, end + NOTE_BYTES, len(line)))
        end += NOTE_BYTES + len(line)
    left = memoryview(b"".join(noted(note, line) for note, line in lines))
    while left:
        left = left[os.write(descriptor, left) :]
    os.fsync(descriptor)
    return refs


def delivered(root: Path, job: str) -> Iterator[tuple[PartNote, PartRef]]:
    """Every row of the job's parts once, in a fixed order. Blocking: for use in a thread.

    Of a row that ran twice the line that comes first is taken, by part and place in it.
    """
    folder = root / "jobs" / job / "parts"
    seen: set[tuple[int, int]] = set()
    for number in sorted(int(path.stem) for path in folder.glob("*.jsonl")):
        for note, ref in scan(_path(folder, number), number):
            if (note.place, note.index) not in seen:
                seen.add((note.place, note.index))
                yield note, ref


def _path(folder: Path, number: int) -> Path:
    return folder / f"{number}.jsonl"
