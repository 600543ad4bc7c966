"""Whether the data directory takes more: what is refused early, so that the disk is never full.

Only new work asks. Lines of running batches and their files are written as long as there is room
at all.
"""

import asyncio
import os
from pathlib import Path
from typing import Protocol

from gateway.core.clock import Clock
from gateway.core.errors import StoreFull

#: What a small record takes on disk.
RECORD_BYTES = 4096
_RETRY_AFTER = 60.0
_PAUSE_SECONDS = 2.0
#: Of counts that take long, the pauses are so many times longer.
_PAUSE_SHARE = 20.0


class Room(Protocol):
    """Asked before new work is taken."""

    async def take(self, size: int) -> None:
        """Note that ``size`` bytes are about to be written. Raises StoreFull when they may not."""


class Plenty:
    """Room without end: the disk itself says when it is full."""

    async def take(self, size: int) -> None:
        """Any size."""


PLENTY = Plenty()


class DiskRoom:
    """``free`` bytes of the disk stay free; at most ``limit`` bytes are kept (0: any number).

    What is kept is counted every two seconds in a thread, more rarely when that takes long, and
    what came since is added. All that is taken in by a process asks the same room; several
    processes on one directory see what the others took at their next count.
    """

    def __init__(self, root: Path, clock: Clock, *, free: int = 0, limit: int = 0) -> None:
        self._root = root
        self._clock = clock
        self._free = free
        self._limit = limit
        self._kept: int | None = None
        self._added = 0
        self._counting = asyncio.Lock()

    async def run(self) -> None:
        """Count again and again, if there is a limit."""
        while self._limit:
            began = self._clock.monotonic()
            await self.count()
            took = self._clock.monotonic() - began
            await self._clock.sleep(max(_PAUSE_SECONDS, _PAUSE_SHARE * took))

    async def take(self, size: int) -> None:
        """Note that ``size`` bytes are about to be written. Raises StoreFull when they may not."""
        if self._free and _available(self._root) - size < self._free:
            raise _full("The gateway's disk is nearly full.")
        if not self._limit:
            return
        if self._kept is None:
            await self.count(again=False)
        if (self._kept or 0) + self._added + size > self._limit:
            raise _full("The gateway keeps as many bytes as it may.")
        self._added += size

    async def count(self, *, again: bool = True) -> None:
        """See what is kept now. What is taken meanwhile is added, whether it was seen or not."""
        async with self._counting:
            if self._kept is not None and not again:
                return
            before = self._added
            self._kept = await asyncio.to_thread(_size, self._root)
            self._added -= before


def _full(message: str) -> StoreFull:
    return StoreFull(message, retry_after=_RETRY_AFTER)


def _available(root: Path) -> int:
    """Bytes of the file system that this process may still write."""
    while not root.exists():
        root = root.parent
    disk = os.statvfs(root)
    return disk.f_bavail * disk.f_frsize


def _size(root: Path) -> int:
    """Bytes below ``root``; several names of the same bytes count once."""
    seen: dict[tuple[int, int], int] = {}
    for folder, _, names in os.walk(root):
        for name in names:
            try:
                found = os.lstat(os.path.join(folder, name))  # noqa: PTH118 - called very often
            except OSError:  # it is gone meanwhile
                continue
            seen[found.st_dev, found.st_ino] = found.st_blocks * 512
    return sum(seen.values())
