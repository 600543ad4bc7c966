"""Long work on the event loop in short stretches, so that calls go on meanwhile."""

import asyncio
from collections.abc import Callable
from time import perf_counter

_STRETCH_SECONDS = 0.001
#: Of the time of a busy loop, so that the work gets done there, too.
_SHARE = 0.1


class Breaks:
    """``await breaks.take()`` between small steps of the work: lets the loop run when it is time.

    A stretch lasts a millisecond, or a tenth of what the loop's last pass took, by ``now``.
    """

    def __init__(self, now: Callable[[], float] = perf_counter) -> None:
        self._now = now
        self._until = now() + _STRETCH_SECONDS

    async def take(self) -> None:
        """Wait for one pass of the loop, if the stretch is over."""
        before = self._now()
        if before < self._until:
            return
        await asyncio.sleep(0)
        now = self._now()
        self._until = now + max(_STRETCH_SECONDS, _SHARE * (now - before))
