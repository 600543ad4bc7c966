"""How much may start at a target within any minute, known beforehand or found out.

Two rules hold at once. *Spread*: starts come evenly, with a burst of a tenth of the limit.
*Window*: what started in any stretch of one minute stays within the known limit, whatever was
learned, corrected or raised meanwhile; it is kept in slots of a sixtieth, two more than a minute of
them, so that a request that travels slowly does not arrive in the next one's minute.
"""

import math

_SLOTS = 63
_PARTS = 60
_BURST = 0.1
_CUT = 0.9
_DEEPEST_CUT = 0.5
_STEP = 0.02
_STEPS_A_MINUTE = 4
_LONGEST_MINUTE = 1.5


class Allowance:
    """One dimension (requests or tokens) of one credential. ``minute`` is in seconds.

    ``limit`` is what the policy says; what a provider tells only lowers it. The pace that throttles
    teach is no limit: it rises again while it is what holds rows back, in steps that double.
    """

    def __init__(self, minute: float, limit: float = math.inf) -> None:
        self._minute = minute
        self._slot = minute / _PARTS
        self._slots = [0.0] * _SLOTS
        self._at = 0
        self._used = 0.0
        self._due = 0.0
        self._given = self._limit = limit
        self._told = self._found = self._before = math.inf
        self._step = self._raise_at = 0.0
        self._since = self._accepted = self._crowd = self._lasted = 0.0
        self.pace = limit

    def wait(self, now: float, amount: float) -> float:
        """Seconds until ``amount`` may start; 0: now."""
        if self.pace == math.inf:
            return 0.0
        self._raise(now)
        self._advance(now)
        if self.pace == math.inf:
            return 0.0
        burst = max(amount, _BURST * self.pace)
        spread = self._due - now - (burst - amount) * self._minute / self.pace
        return max(0.0, spread, self._window(now, amount))

    def take(self, now: float, amount: float) -> None:
        """``amount`` starts."""
        self._advance(now)
        if self._used <= 0:
            self._since, self._accepted = now, 0.0
        self._slots[self._at % _SLOTS] += amount
        self._used += amount
        self._accepted += amount
        if self.pace != math.inf:
            self._due = max(self._due, now) + amount * self._minute / self.pace

    def correct(self, started: float, difference: float) -> None:
        """What was taken at ``started`` turned out ``difference`` larger, or smaller."""
        slot = int(started / self._slot)
        if started >= self._since:
            self._accepted += difference
        if self._at - slot < _SLOTS:
            self._slots[slot % _SLOTS] += difference
            self._used += difference
            if self.pace != math.inf and difference > 0:
                self._due += difference * self._minute / self.pace

    def told(
        self, now: float, limit: float | None, remaining: float | None, reset: float | None
    ) -> None:
        """The provider told its limit. One that takes longer than a minute to reset is another's.

        What others used up of it counts as started here.
        """
        if limit is None or limit < 1 or (reset or 0.0) > _LONGEST_MINUTE * self._minute:
            return
        if limit != self._told:
            self._told = limit
            self._settle(now)
        if remaining is not None:
            self._advance(now)
            others = limit - remaining - self._used
            if others > 0:
                self._slots[self._at % _SLOTS] += others
                self._used += others

    def throttled(self, now: float, wait: float, *, again: bool) -> None:
        """One row too many had started; it is taken back already.

        What was accepted, over the time it took and the ``wait`` until more is, tells the pace.
        ``again``: it started with the crowd of the last time, of which less was accepted then.
        """
        if again:
            self._crowd -= 1
        elif self._accepted <= 0:  # still the same wait: its time counts to what is accepted next
            self._before, self._crowd = self.pace, 0.0
        else:
            elapsed = now - self._since
            crowd = self._accepted, elapsed + wait
            self._crowd, self._lasted = crowd if elapsed < self._minute else (self._used, elapsed)
            self._before, self._since, self._accepted = self.pace, now, 0.0
        self._found = self._before
        if self._crowd > 0:  # else it is not the pace that was wrong
            pace = _CUT * self._crowd * self._minute / max(self._lasted, self._slot)
            deepest = 1.0 if self._before == math.inf else max(1.0, _DEEPEST_CUT * self._before)
            self._found = max(min(pace, self._before), deepest)
        self._step = max(1.0, _STEP * self._found)
        self._raise_at = now + self._minute / _STEPS_A_MINUTE
        self._settle(now)

    def _raise(self, now: float) -> None:
        if self._found == math.inf or now < self._raise_at:
            return
        if self._used >= _CUT * self._found:
            self._found += self._step
            self._step *= 2
            if self._found >= self._limit != math.inf:
                self._found = math.inf
        self._raise_at = now + self._minute / _STEPS_A_MINUTE
        self._settle(now)

    def _settle(self, now: float) -> None:
        self._limit = min(self._given, self._told)
        self.pace = min(self._limit, self._found)
        if self.pace != math.inf:
            self._due = min(self._due, now + self._minute / self.pace)

    def _window(self, now: float, amount: float) -> float:
        """Seconds until enough of the minute's starts are long enough ago."""
        excess = self._used + amount - self._limit
        if excess <= 0 or self._used <= 0:
            return 0.0
        for back in range(_SLOTS - 1, -1, -1):
            slot = self._at - back
            excess -= self._slots[slot % _SLOTS]
            if excess <= 0:
                return max(0.0, (slot + _SLOTS) * self._slot - now)
        return self._minute

    def _advance(self, now: float) -> None:
        slot = int(now / self._slot)
        if slot == self._at:
            return
        for passed in range(self._at + 1, min(slot, self._at + _SLOTS) + 1):
            self._used -= self._slots[passed % _SLOTS]
            self._slots[passed % _SLOTS] = 0.0
        self._at = slot
