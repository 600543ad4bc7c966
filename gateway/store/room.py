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

_RETRY_AFTER = 60.0
_COUNTED_SECONDS = 30.0


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

    What is kept is counted every half minute, and what came since is added.
    """

    def __init__(self, root: Path, clock: Clock, *, free: int = 0, limit: int = 0) -> None:
        self._root = root
        self._clock = clock
        self._free = free
        self._limit = limit
        self._kept = 0
        self._added = 0
        self._counted_at = -_COUNTED_SECONDS

    async def take(self, size: int) -> None:
        """Note that ``size`` bytes are about to be written. Raises StoreFull when they may not."""
        if self._limit:
            await self._count()
            self._added += size
            if self._kept + self._added > self._limit:
                self._added -= size
                raise _full("The gateway keeps as many bytes as it may.")
        if self._free and _available(self._root) - size < self._free:
            raise _full("The gateway's disk is nearly full.")

    async def _count(self) -> None:
        now = self._clock.monotonic()
        if now - self._counted_at >= _COUNTED_SECONDS:
            self._counted_at = now
            self._kept, self._added = await asyncio.to_thread(_size, self._root), 0


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
            except FileNotFoundError:
                continue
            seen[found.st_dev, found.st_ino] = found.st_blocks * 512
    return sum(seen.values())
