"""One page of metrics for several processes: whichever is asked tells of all of them.

Each process keeps a snapshot in a folder of theirs, renewed twice a second. One that is started
again goes on from what the one before it had noted, so a sum never falls.
"""

import asyncio
import os
from pathlib import Path
from typing import Any

import orjson

from gateway.telemetry.metrics import Metrics

_EVERY = 0.5


class MultiprocessMetrics:
    """The counters of process ``name`` among those whose snapshots are in ``folder``."""

    def __init__(self, metrics: Metrics, folder: Path, name: str) -> None:
        self._metrics = metrics
        self._folder = folder
        self._path = folder / f"{name}.json"
        self._before = _read(self._path)
        self._written = b""

    async def run(self) -> None:
        """Keep the snapshot fresh until cancelled."""
        while True:
            self.write()
            await asyncio.sleep(_EVERY)

    def write(self) -> None:
        """Write the snapshot if it is another one. A fault of the disk leaves the last one."""
        text = orjson.dumps({"pid": os.getpid(), **self._own().snapshot()})
        if text == self._written:
            return
        fresh = self._path.with_suffix(".new")
        try:
            fresh.write_bytes(text)
            fresh.replace(self._path)
        except OSError:
            return
        self._written = text

    def text(self) -> str:
        """The page: this process as it is, the others as of their last snapshot."""
        total = self._own()
        for path in sorted(self._folder.glob("*.json")):
            if path != self._path:
                other = _read(path)
                total.add(other, gauges=_lives(other.get("pid")))
        return total.text()

    def _own(self) -> Metrics:
        total = self._metrics.like()
        total.add(self._before, gauges=False)
        total.add(self._metrics.snapshot(), gauges=False)  # gauges of `like` are read anew
        return total


def _read(path: Path) -> dict[str, Any]:
    try:
        return dict(orjson.loads(path.read_bytes()))
    except (OSError, ValueError):
        return {}


def _lives(pid: int | None) -> bool:
    """Whether the process is there: what a dead one had running is not running any more."""
    if pid is None:
        return False
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True
