"""Watches how full the engine's batch is, through the worker's ``/metrics``."""

import asyncio
import contextlib
from dataclasses import dataclass
from statistics import fmean
from typing import Self

import httpx

RUNNING = "headway_worker_rows_running"


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Rows that decoded at once, sampled over time; ``at`` is loop time in seconds."""

    at: tuple[float, ...]
    rows: tuple[float, ...]

    def between(self, start: float, end: float) -> "Occupancy":
        """The samples of a stretch of time."""
        chosen = [i for i, at in enumerate(self.at) if start <= at <= end]
        return Occupancy(tuple(self.at[i] for i in chosen), tuple(self.rows[i] for i in chosen))

    def middle_half(self, start: float, end: float) -> float:
        """Mean over the middle half of a stretch, without filling and draining; NaN if unseen."""
        quarter = (end - start) / 4
        rows = self.between(start + quarter, end - quarter).rows
        return fmean(rows) if rows else float("nan")


class Gauge:
    """Samples until it is stopped; use it as an asynchronous context manager."""

    def __init__(self, worker_url: str, every: float = 0.1) -> None:
        self._url = worker_url.removesuffix("/v1") + "/metrics"
        self._every = every
        self._at: list[float] = []
        self._rows: list[float] = []
        self._task: asyncio.Task[None] | None = None

    @property
    def latest(self) -> float:
        """The last sample; 0 before the first."""
        return self._rows[-1] if self._rows else 0.0

    def occupancy(self) -> Occupancy:
        """What was sampled so far."""
        return Occupancy(tuple(self._at), tuple(self._rows))

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._sample())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _sample(self) -> None:
        now = asyncio.get_running_loop().time
        async with httpx.AsyncClient(timeout=5) as client:
            while True:
                with contextlib.suppress(httpx.HTTPError):
                    text = (await client.get(self._url)).text
                    self._at.append(now())
                    self._rows.append(value_of(text, RUNNING))
                await asyncio.sleep(self._every)


def value_of(text: str, name: str) -> float:
    """Sum of the series called ``name`` in a Prometheus text; 0 when there is none."""
    found = 0.0
    for line in text.splitlines():
        if line.startswith(name) and line[len(name) : len(name) + 1] in {" ", "{"}:
            found += float(line.rsplit(" ", 1)[1])
    return found
