"""Leaving out a target that fails, and noticing that it works again."""

from collections.abc import Callable

from gateway.policy.target import BreakerPolicy

_NEWEST = 0.05  # weight of the newest call in the share of failed ones


class Breaker:
    """A circuit breaker: open after too many failures.

    While it is open one call a pause is let through (half-open); the first that works closes it.
    Calls that were under way when it opened, and fail, too, are no reason for a longer pause.
    ``turned`` hears when it opens and when it closes.
    """

    __slots__ = ("_failed", "_in_row", "_pause", "_rule", "_tried", "_turned", "_until", "is_open")

    def __init__(self, rule: BreakerPolicy, turned: Callable[[], None] = lambda: None) -> None:
        self._turned = turned
        self._rule = rule
        self._in_row = 0
        self._failed = 0.0
        self._pause = rule.pause
        self._until = 0.0
        self._tried = False
        self.is_open = False

    def wait(self, now: float) -> float:
        """Seconds until a call may go; 0: now."""
        return max(self._until - now, 0.0) if self.is_open else 0.0

    def enter(self, now: float) -> None:
        """A call goes. While open, the next one goes a pause later, whatever becomes of this."""
        if self.is_open:
            self._until = now + self._pause
            self._tried = True

    def probe_now(self) -> None:
        """There is reason to try again at once."""
        self._until = 0.0

    def worked(self) -> None:
        """A call worked."""
        self._failed -= _NEWEST * self._failed
        if self._in_row or self.is_open:
            self._in_row, self._pause = 0, self._rule.pause
            if self.is_open:
                self.is_open, self._failed = False, 0.0
                self._turned()

    def failed(self, now: float) -> None:
        """A call failed."""
        self._in_row += 1
        self._failed += _NEWEST * (1.0 - self._failed)
        if self.is_open:
            if self._tried:
                self._tried = False
                self._pause = min(2 * self._pause, self._rule.longest)
                self._until = now + self._pause
        elif self._rule.off:
            pass
        elif self._in_row >= self._rule.failures or self._failed > self._rule.share:
            self.is_open, self._tried = True, False
            self._until = now + self._pause
            self._turned()
