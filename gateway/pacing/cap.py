"""The cap on rows in flight: as many as keep the gap between tokens of interactive calls.

A single gap is noise. So gaps are heard for a flight, and their mean moves the cap.
"""

import math
from statistics import fmean
from typing import Final

_AIM: Final = 0.95
_FAR: Final = 0.25
_WHOLE_WAY: Final = 1.0
_SHORTEST_WAY: Final = 0.25
_DEEPEST_CUT: Final = 0.5
_GROWTH: Final = 1.5
_LEAST_GAP: Final = 0.1
_ENOUGH: Final = 2
_SECOND_LOOK: Final = 0.5
_FLIGHT_MEMORY: Final = 0.2
_FIRST_FLIGHT: Final = 2.0


class RowCap:
    """``rows`` may be in flight, never fewer than ``floor`` or more than ``ceiling``.

    Until the mean gap of a flight first comes near ``target`` seconds, the cap doubles each flight
    that uses it up. From then on it moves to where gaps in proportion to rows would be just under
    the target: the whole way at first, then half, then a quarter of it; to half at most, and up by
    half at most. A gap a quarter off the target is no noise: it is the whole way again, and two
    such gaps in a row over the target do not wait for the end of a flight. After a move that was
    the whole way too they wait for half of one: rows in flight cannot be taken back.
    """

    def __init__(self, start: int, floor: int, ceiling: int, target: float, now: float) -> None:
        self.rows = float(min(max(start, floor), ceiling))
        self._floor = floor
        self._ceiling = ceiling
        self._target = target
        self._flight = _FIRST_FLIGHT
        self._moved_at = now
        self._gaps: list[float] = []
        self._found = False
        self._way = 2 * _WHOLE_WAY
        self._used_up = False

    def used_up(self) -> None:
        """There may be work for more rows."""
        self._used_up = True

    def ended(self, seconds: float) -> None:
        """A row was in flight for so long."""
        self._flight += _FLIGHT_MEMORY * (seconds - self._flight)

    def gap(self, seconds: float, running: int, now: float) -> None:
        """A fresh mean of the gaps between tokens, with ``running`` rows in flight."""
        self._gaps.append(seconds / self._target)
        latest = self._gaps[-_ENOUGH:]
        if len(latest) < _ENOUGH:
            return
        if now >= self._moved_at + self._flight:
            self._move(fmean(self._gaps), running, now)
        elif min(latest) > 1 + _FAR and now >= self._moved_at + self._patience():
            self._move(fmean(latest), running, now)

    def _patience(self) -> float:
        return _SECOND_LOOK * self._flight if self._way == _WHOLE_WAY else 0.0

    def _move(self, gap: float, running: int, now: float) -> None:
        """``gap`` is a mean in parts of the target. A cap never reached is no place to cut from."""
        over = gap > _AIM
        if over and not self._found:
            self._found = True
            self._set(min(self.rows, max(running, 1)))
        if over or self._used_up:
            self._set(self.rows * self._step(gap))
        self._moved_at = now
        self._used_up = False
        self._gaps.clear()

    def _step(self, gap: float) -> float:
        wanted = _AIM / max(gap, _LEAST_GAP)
        if wanted > 1 and not self._found:
            return 2
        far = abs(gap - 1) > _FAR
        self._way = _WHOLE_WAY if far else max(_SHORTEST_WAY, self._way / 2)
        return min(_GROWTH, math.pow(max(_DEEPEST_CUT, wanted), self._way))

    def _set(self, rows: float) -> None:
        self.rows = min(max(rows, self._floor), self._ceiling)
