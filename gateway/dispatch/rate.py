"""When a row may start, as far as the limits of one credential at one target are concerned."""

import math

from gateway.core.rates import RateLimits
from gateway.dispatch.allowance import Allowance

_MEMORY = 0.1
_LEAST_FACTOR, _MOST_FACTOR = 0.1, 20.0
_LONGEST_PAUSE = 60.0
_FIRST_PAUSE = 1.0


class RateBudget:
    """Requests and tokens of one credential.

    A row's tokens are reserved by estimate when it starts and corrected by its usage when it ends;
    how far estimates are off is remembered. ``minute`` is the length of a minute in seconds.
    """

    def __init__(
        self, minute: float, requests: float | None = None, tokens: float | None = None
    ) -> None:
        self._minute = minute
        self._requests = Allowance(minute, requests or math.inf)
        self._tokens = Allowance(minute, tokens or math.inf)
        self._factor = 1.0
        self._closed_until = 0.0
        self._crowd = 0.0
        self._pause = _FIRST_PAUSE
        self._longest = _LONGEST_PAUSE
        self.rejected = False

    def wait(self, now: float, tokens: float) -> float:
        """Seconds until a row of about ``tokens`` tokens may start; 0: now."""
        return max(
            self._closed_until - now,
            self._requests.wait(now, 1),
            self._tokens.wait(now, tokens * self._factor),
            0.0,
        )

    def rate(self) -> float:
        """Requests a second, in the long run."""
        return self._requests.pace / self._minute

    def take(self, now: float, tokens: float) -> float:
        """A row starts; returns the tokens reserved for it."""
        reserved = tokens * self._factor
        self._requests.take(now, 1)
        self._tokens.take(now, reserved)
        return reserved

    def give_back(self, started: float, reserved: float, *, request: bool) -> None:
        """What started then was not worked on; ``request``: it does not even count as one."""
        self._tokens.correct(started, -reserved)
        if request:
            self._requests.correct(started, -1)

    def used(self, started: float, reserved: float, actual: int) -> None:
        """The row that started then took ``actual`` tokens."""
        if actual <= 0 or reserved <= 0:
            return
        self._tokens.correct(started, actual - reserved)
        factor = self._factor * (1 + _MEMORY * (actual / reserved - 1))
        self._factor = min(max(factor, _LEAST_FACTOR), _MOST_FACTOR)

    def told(self, now: float, rates: RateLimits) -> None:
        """The provider's own figures."""
        for allowance, quota in (self._requests, rates.requests), (self._tokens, rates.tokens):
            allowance.told(now, quota.limit, quota.remaining, quota.reset)

    def accepted(self) -> None:
        """A row was taken: pauses begin small again."""
        self._pause = _FIRST_PAUSE
        self.rejected = False

    def throttled(
        self, now: float, started: float, wait: float | None, rates: RateLimits | None
    ) -> None:
        """A row that started then was refused: nothing starts until ``wait`` seconds from now.

        Without a time to wait for, pauses double. Rows that were already out when the first one
        was refused say nothing new. When tokens are what ran out, the requests are not cut.
        """
        again = started < self._crowd
        if not again:
            self._crowd = now
        if wait is None and not again:
            wait = self._pause
            self._pause = min(2 * self._pause, self._longest)
        self._requests.correct(started, -1)
        if rates is None or rates.tokens.remaining != 0:
            self._requests.throttled(now, wait or 0.0, again=again)
        self._closed_until = max(self._closed_until, now + (wait or 0.0))

    def reject(self, now: float) -> None:
        """The credential is not accepted: it is left alone for a while, then tried again."""
        self.rejected = True
        self._closed_until = max(self._closed_until, now + self._pause)
        self._pause = min(2 * self._pause, self._longest)
