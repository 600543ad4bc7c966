"""Where a running gateway can be found: ``gateway.json`` in its data directory.

Several gateways may share a directory. One of them is announced: whoever holds the lock. When it
ends, however it ends, another one takes its place.
"""

import asyncio
import fcntl
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

_NAME = "gateway.json"
_LOCK = "gateway.lock"
_LOOK_EVERY = 2.0


@dataclass(frozen=True, slots=True)
class Announcement:
    """What other processes on this machine may know about the gateway; no secret in it."""

    base_url: str
    pid: int
    local: Mapping[str, str] = field(default_factory=dict)


def announce(data_dir: Path, announcement: Announcement) -> None:
    """Write it, whole or not at all."""
    fresh = data_dir / f"{_NAME}.{os.getpid()}"
    fresh.write_text(json.dumps(asdict(announcement)))
    fresh.replace(data_dir / _NAME)


def announced(data_dir: Path) -> Announcement | None:
    """What the gateway of this data directory announced last; None: nothing readable."""
    try:
        return Announcement(**json.loads((data_dir / _NAME).read_text()))
    except (OSError, ValueError, TypeError):
        return None


class Announcer:
    """Keeps one gateway announced, unless another one is."""

    def __init__(self, data_dir: Path, announcement: Announcement) -> None:
        self._dir = data_dir
        self._announcement = announcement
        self._lock: int | None = None

    def try_once(self) -> bool:
        """Announce if nobody else is announced; whether this one is. A fault of the disk is no."""
        if self._lock is not None:
            return True
        try:
            lock = os.open(self._dir / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            return False
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            announce(self._dir, self._announcement)
        except OSError:
            os.close(lock)
            return False
        self._lock = lock
        return True

    async def run(self, every: float = _LOOK_EVERY) -> None:
        """Take the place of the one that is announced, once that has ended."""
        while not self.try_once():  # noqa: ASYNC110 - nobody tells of another process's end
            await asyncio.sleep(every)
        await asyncio.Event().wait()

    def withdraw(self) -> None:
        """Remove what this one announced."""
        if self._lock is not None:
            (self._dir / _NAME).unlink(missing_ok=True)
            os.close(self._lock)
            self._lock = None
