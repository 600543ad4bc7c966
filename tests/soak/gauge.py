"""What a gateway holds while nobody calls: memory, descriptors, connections, tasks, places."""

import asyncio
from dataclasses import dataclass

import httpx
import psutil

from tests.support.serve import KEY, RunningHeadway
from tests.support.upstream import ScriptedUpstream

_MOST_GROWTH = 0.1
_STRAY = 3  # a store connection more, a timer's task


@dataclass(frozen=True)
class Reading:
    """``rss`` in bytes; ``files`` without the kept connections to targets, which are ``kept``."""

    rss: int
    files: int
    kept: int
    tasks: float
    places: float

    def leaks_since(self, earlier: "Reading") -> list[str]:
        """What has grown that may not, each in a sentence."""
        found = []
        if self.rss > earlier.rss * (1 + _MOST_GROWTH):
            found.append(f"memory grew from {earlier.rss >> 20} to {self.rss >> 20} MiB")
        if self.files > earlier.files + _STRAY:
            found.append(f"{self.files} descriptors are open, {earlier.files} were")
        if self.tasks > earlier.tasks + _STRAY:
            found.append(f"{self.tasks:g} tasks run, {earlier.tasks:g} did")
        if self.places:
            found.append(f"{self.places:g} places are taken though nobody calls")
        return found


class Gauge:
    """Reads it from outside: the system's view of the process, and its metrics."""

    def __init__(
        self, running: RunningHeadway, process: psutil.Process, upstreams: list[ScriptedUpstream]
    ) -> None:
        self._running = running
        self._process = process
        self._upstreams = upstreams

    async def read(self) -> Reading:
        """One reading."""
        page = await asyncio.to_thread(self._page)
        kept = sum(upstream.open_connections for upstream in self._upstreams)
        return Reading(
            self.memory(),
            self._process.num_fds() - kept,
            kept,
            _sum(page, "headway_tasks"),
            _sum(page, "headway_calls_running") + _sum(page, "headway_calls_waiting"),
        )

    def memory(self) -> int:
        """Bytes that the process has now."""
        return int(self._process.memory_info().rss)

    def _page(self) -> str:
        headers = {"authorization": f"Bearer {KEY}"}
        return httpx.get(f"{self._running.root}/metrics", headers=headers, timeout=10).text


def _sum(page: str, name: str) -> float:
    lines = [line for line in page.splitlines() if line.startswith(f"{name}{{")]
    assert lines, f"{name} is not among the metrics"
    return sum(float(line.rpartition(" ")[2]) for line in lines)
