"""Whether a target works, as its rows find out.

A target that refuses connections, or that fails row after row, is asked again by one row at a
time, at growing intervals, and those failures charge no try: a restart or an outage that takes a
while must not use up the tries of every row. An outage longer than ``patience`` is no restart any
more; then rows go out as usual and each failure counts, unless they have somewhere else to go.
"""

import logging
import math

from gateway.core.clock import Clock
from gateway.dispatch.witness import GRACE

log = logging.getLogger(__name__)

_LONGEST_PAUSE = 2.0
_ROWS_IN_A_ROW = 3
_TOGETHER = 2 * GRACE


class Gate:
    """One target's gate. ``base`` is the first pause; all times are in seconds.

    The operator is told under ``name`` when rows no longer flow, and when they do again.
    """

    def __init__(
        self, clock: Clock, *, base: float, patience: float, name: str = "of the batch"
    ) -> None:
        self._name = name
        self._clock = clock
        self._base = base
        self.patience = patience
        self._since: float | None = None
        self._pause = base
        self._next = 0.0
        self._held_until = 0.0
        self._failed: set[object] = set()
        self._lost: list[float] = []
        self._crashed = False
        self.outages = 0

    @property
    def healthy(self) -> bool:
        """Whether rows flow as usual."""
        return self._since is None and not self._crashed

    def places(self, *, elsewhere: bool = False) -> float:
        """Rows that may be sent now: no limit, or one to ask again, or none.

        ``elsewhere``: the rows have another target, so there is never a reason to lose patience.
        """
        if self.healthy and not self._held_until:
            return math.inf
        now = self._clock.monotonic()
        if now < self._held_until:
            return 0
        lasted = math.inf if self._since is None else now - self._since
        if self.healthy or (lasted >= self.patience and not elsewhere):
            return math.inf
        return 1 if now >= self._next else 0

    def wait(self) -> float:
        """Seconds until ``places`` may be more than 0."""
        return max(0.0, max(self._next, self._held_until) - self._clock.monotonic())

    def asking(self) -> None:
        """A row goes out; the next one waits for its answer or for the pause to pass."""
        if not self.healthy:
            self._next = self._clock.monotonic() + self._pause
            self._pause = min(2 * self._pause, _LONGEST_PAUSE)

    def answered(self) -> None:
        """The target works: it answered."""
        if self._since is not None:
            log.info("target %s takes batch rows again", self._name)
        self._since = None
        self._pause = self._base
        self._held_until = 0.0
        self._failed.clear()
        self._crashed = False

    def lost(self) -> None:
        """A connection was lost: until the verdict nothing is sent to what may be dying."""
        now = self._clock.monotonic()
        self._held_until = now + GRACE
        self._lost = [at for at in self._lost if now - at < _TOGETHER] + [now]

    def lost_of_late(self) -> int:
        """Connections lost in this moment and a little before: of one crash, all."""
        now = self._clock.monotonic()
        return sum(now - at < _TOGETHER for at in self._lost)

    def crashed(self) -> None:
        """The target died under a row: until it answers, rows prefer another one if they can."""
        self._crashed = True

    def refused(self) -> bool:
        """A connection was refused. True: the outage is so long that the row's try counts."""
        now = self._clock.monotonic()
        if self._since is None:
            self._since = now
            self._next = now + self._pause
            self.outages += 1
            log.warning("target %s fails batch rows: it is asked by one at a time", self._name)
        return now - self._since >= self.patience

    def failed(self, row: object) -> bool:
        """``row`` failed at the target's fault. True: its try counts.

        One row may be at fault itself; when three different ones failed and none was answered
        between, it is the target.
        """
        self._held_until = 0.0
        if self._since is None:
            self._failed.add(row)
            if len(self._failed) < _ROWS_IN_A_ROW:
                return True
        return self.refused()
