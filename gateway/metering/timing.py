"""Time to first token and the gaps between tokens, in constant memory."""

import math
from collections import defaultdict

from gateway.metering.record import CallTiming

_log = math.log
_FLOOR = 1e-4
_STEPS_PER_E = 1 / math.log(1.1)


class TokenTiming:
    """Collects the moments at which content arrived. Times are monotonic seconds."""

    __slots__ = ("_counts", "_first", "_gaps", "_last", "_max", "_started", "_sum")

    def __init__(self, started: float) -> None:
        self._started = started
        self._first: float | None = None
        self._last = started
        self._gaps = 0
        self._sum = 0.0
        self._max = 0.0
        self._counts = defaultdict[int, int](int)

    def content(self, now: float, events: int = 1) -> None:
        """So many events with content arrived at once; none of comments or a lone role."""
        if self._first is None:
            self._first = self._last = now
        else:
            gap = now - self._last
            self._last = now
            self._sum += gap
            self._max = max(self._max, gap)
            step = int(_log(gap / _FLOOR) * _STEPS_PER_E) + 1 if gap > _FLOOR else 0
            self._gaps += 1
            self._counts[step] += 1
        if events > 1:
            self._gaps += events - 1
            self._counts[0] += events - 1

    @property
    def ttft_s(self) -> float | None:
        """Seconds from the start to the first content."""
        return None if self._first is None else self._first - self._started

    def summary(self) -> CallTiming:
        """What the record keeps."""
        if not self._gaps:
            return CallTiming(self.ttft_s)
        return CallTiming(
            self.ttft_s,
            self._gaps,
            self._sum / self._gaps,
            self._quantile(0.50),
            self._quantile(0.99),
            self._max,
        )

    def _quantile(self, share: float) -> float:
        """The middle of the step in which the quantile lies, never above the longest gap."""
        rank = math.ceil(share * self._gaps)
        for step in sorted(self._counts):
            rank -= self._counts[step]
            if rank <= 0:
                break
        middle = _FLOOR * 1.1 ** (step - 0.5) if step else _FLOOR / 2
        return min(middle, self._max)
