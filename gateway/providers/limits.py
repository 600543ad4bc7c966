"""The time limits of one attempt, kept by a single timer."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from gateway.core.errors import UpstreamTimeout
from gateway.core.targets import Timeouts

T = TypeVar("T")


class AttemptLimits:
    """Bounds each wait of an attempt, and all of them together.

    The timer is moved only when it fires too early, so that a stream of many short waits costs
    next to nothing. Time spent between waits (a slow client) does not count against ``idle``.
    """

    def __init__(self, target: str, timeouts: Timeouts) -> None:
        self._loop = asyncio.get_running_loop()
        self._target = target
        self._ends = self._loop.time() + timeouts.total
        self._task: asyncio.Task[object] | None = None
        self._deadline = 0.0
        self._armed_for = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._expired = False

    async def wait(self, what: Awaitable[T], phase: str, seconds: float) -> T:
        """``what``, within ``seconds`` and the total limit. Raises UpstreamTimeout."""
        self._task = task = asyncio.current_task()
        deadline = self._loop.time() + seconds
        total = deadline > self._ends
        self._deadline = self._ends if total else deadline
        if self._timer is None or self._armed_for > self._deadline:
            self._arm()
        try:
            return await what
        except asyncio.CancelledError:
            if not self._expired or task is None:
                raise
            self._expired = False
            if task.uncancel() > 0:
                raise
            limit = "total" if total else phase
            raise UpstreamTimeout(
                f"The target did not answer within its {limit} limit.", target=self._target
            ) from None
        finally:
            self._task = None

    def close(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self) -> None:
        self.close()
        self._armed_for = self._deadline
        self._timer = self._loop.call_at(self._deadline, self._fire)

    def _fire(self) -> None:
        self._timer = None
        if self._task is None:
            return
        if self._loop.time() < self._deadline - 0.001:
            self._arm()
            return
        self._expired = True
        self._task.cancel()
