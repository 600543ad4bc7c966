"""Whether a target takes connections, as its rows find out.

A target that refuses connections is asked again by one row at a time, at growing intervals, and
the refusals charge no try: a restart that takes a while must not use up the tries of every row. An
outage longer than ``patience`` is no restart any more; then rows go out as usual and each refusal
counts.
"""

import math

from gateway.core.clock import Clock
from gateway.dispatch.witness import GRACE

_LONGEST_PAUSE = 2.0


class Gate:
    """One target's gate. ``base`` is the first pause; all times are in seconds."""

    def __init__(self, clock: Clock, *, base: float, patience: float) -> None:
        self._clock = clock
        self._base = base
        self._patience = patience
        self._since: float | None = None
        self._pause = base
        self._next = 0.0
        self._held_until = 0.0

    def places(self) -> float:
        """Rows that may be sent now: no limit, or one to ask again, or none."""
        now = self._clock.monotonic()
        if now < self._held_until:
            return 0
        if self._since is None or now - self._since >= self._patience:
            return math.inf
        return 1 if now >= self._next else 0

    def wait(self) -> float:
        """Seconds until ``places`` may be more than 0."""
        return max(0.0, max(self._next, self._held_until) - self._clock.monotonic())

    def asking(self) -> None:
        """A row goes out; the next one waits for its answer or for the pause to pass."""
        if self._since is not None:
            self._next = self._clock.monotonic() + self._pause
            self._pause = min(2 * self._pause, _LONGEST_PAUSE)

    def answered(self) -> None:
        """The target is there: it answered."""
        self._since = None
        self._pause = self._base
        self._held_until = 0.0

    def lost(self) -> None:
        """A connection was lost: until the verdict nothing is sent to what may be dying."""
        self._held_until = self._clock.monotonic() + GRACE

    def refused(self) -> bool:
        """A connection was refused. True: the outage is so long that the row's try counts."""
        now = self._clock.monotonic()
        if self._since is None:
            self._since = now
            self._next = now + self._pause
        return now - self._since >= self._patience
