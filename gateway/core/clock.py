"""Time, passed as an object so that tests can drive it."""

import asyncio
import time
from typing import Protocol


def since_boot() -> float:
    """Seconds that go on while the machine sleeps, where the system can tell."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime(clock)


class Clock(Protocol):
    """What the product may know about time."""

    def now(self) -> float:
        """Wall clock, Unix seconds. For records and answers only, never for durations."""

    def monotonic(self) -> float:
        """Seconds from an arbitrary start; never goes back. For durations and deadlines."""

    async def sleep(self, seconds: float) -> None:
        """Wait ``seconds``."""


class SystemClock:
    """The machine's clocks."""

    def now(self) -> float:
        """Wall clock, Unix seconds."""
        return time.time()

    def monotonic(self) -> float:
        """Monotonic seconds."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait ``seconds`` on the running event loop."""
        await asyncio.sleep(seconds)
