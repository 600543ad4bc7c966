"""The time limits of one attempt, kept by a single timer."""

import asyncio

_EARLY = 0.001


class Deadline:
    """One wait at a time, each with its limit, kept by a single timer.

    The timer is moved only when it fires too early, or must fire sooner than it would, so that
    many short waits cost next to nothing. ``ends`` limits all of them together.
    """

    __slots__ = ("_armed_for", "_loop", "_timer", "_until", "_waiter", "ends", "is_total")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.ends = 0.0
        self.is_total = False
        self._loop = loop
        self._until = 0.0
        self._armed_for = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._waiter: asyncio.Future[None] | None = None

    def wait(self, seconds: float) -> asyncio.Future[None]:
        """Done when ``come`` is called. Raises TimeoutError; ``is_total`` tells by which limit."""
        self.go_on(seconds)
        self._waiter = self._loop.create_future()
        return self._waiter

    @property
    def is_waiting(self) -> bool:
        """Whether what is waited for has not come yet."""
        return self._waiter is not None and not self._waiter.done()

    def go_on(self, seconds: float) -> None:
        """Something came that does not end the wait: it goes on with a limit of its own."""
        until = self._loop.time() + seconds
        self.is_total = until > self.ends
        self._until = self.ends if self.is_total else until
        if self._timer is None or self._armed_for > self._until:
            self._arm()

    def come(self) -> None:
        """What was waited for is there."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def close(self) -> None:
        """Stop the timer; a wait that is under way has no limit any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self) -> None:
        self.close()
        self._armed_for = self._until
        self._timer = self._loop.call_at(self._until, self._fire)

    def _fire(self) -> None:
        self._timer = None
        if self._waiter is None or self._waiter.done():
            return
        if self._loop.time() < self._until - _EARLY:
            self._arm()
        else:
            waiter, self._waiter = self._waiter, None  # the error leads back to who waits
            waiter.set_exception(TimeoutError())
