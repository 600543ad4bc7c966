"""The last lines of a journal in memory that outlives its process.

The journal hands lines to the operating system a few times a second. Until then they stand here,
in a file that is mapped into memory: putting one there is no system call, and a process that is
killed leaves it behind. A machine that loses power does not.
"""

import mmap
import os
from pathlib import Path

SUFFIX = ".window"
SIZE = 256 * 2**10
_HEAD = 8


class Window:
    """Room for ``size`` bytes of lines in a new file. Raises OSError when there is no room."""

    def __init__(self, path: Path, size: int = SIZE) -> None:
        self._path = path
        self._size = _HEAD + size
        self._at = _HEAD
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            # Pages that the disk has no room for would end the process when they are written.
            os.posix_fallocate(handle, 0, self._size)
            self._memory = mmap.mmap(handle, self._size)
        except OSError:
            path.unlink(missing_ok=True)
            raise
        finally:
            os.close(handle)

    def put(self, line: bytes) -> bool:
        """Keep a line; False when there is no room. It counts once its length is written."""
        end = self._at + len(line)
        if end > self._size:
            return False
        self._memory[self._at : end] = line
        self._mark(end)
        return True

    def clear(self) -> None:
        """The lines are elsewhere now."""
        self._mark(_HEAD)

    def close(self) -> None:
        """Remove it."""
        self._memory.close()
        self._path.unlink(missing_ok=True)

    def _mark(self, end: int) -> None:
        self._at = end
        self._memory[:_HEAD] = (end - _HEAD).to_bytes(_HEAD, "little")


def left_in(path: Path) -> bytes:
    """The lines that a dead process left in its window; empty when there is none."""
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return b""
    return text[_HEAD : _HEAD + int.from_bytes(text[:_HEAD], "little")]


def window_of(folder: Path, journal: str) -> Path:
    """Where the window of a journal is."""
    return folder / f"{journal}{SUFFIX}"
