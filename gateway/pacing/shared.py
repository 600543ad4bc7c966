"""Offline rows on an engine that also answers people: who may start, and how many run.

The prefill gate is what keeps the first token of an interactive call near what it is alone. While
such a call is in flight one offline row at a time may be without its first token; while one waits
for its own first token no offline row starts, and those that have just begun are taken back. So
hardly any prefill stands in front of a newcomer, and little can queue inside the engine. The cap on
rows in flight holds the gap between tokens, and finds its own size.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from gateway.core.clock import Clock
from gateway.core.load import ITL_TARGET, TargetLoad
from gateway.core.targets import EngineLoad
from gateway.pacing.cap import RowCap
from gateway.pacing.room import EngineRoom
from gateway.pacing.share import WHOLE, Share
from gateway.pacing.window import CapsNow

_MEMORY: Final = 0.3
_EARLY: Final = 0.5
_QUICK_SECONDS: Final = 0.2
_LONGEST_HOLD: Final = 2.0
_USUAL_WAITS: Final = 10.0


class Waiting(NamedTuple):
    """Interactive calls at a target; ``prefilling`` of them have no first token yet."""

    calls: int
    prefilling: int


@dataclass(frozen=True, slots=True)
class Caps:
    """What the policy says.

    ``start`` rows run at first, never fewer than ``floor`` or more than ``ceiling``; floor and
    ceiling alike mean a fixed cap. Of them ``prefill_busy`` may be without a first token while an
    interactive call is in flight; else ``prefill_idle``, or more while their prompts together have
    fewer than ``prefill_tokens`` tokens. ``itl_target`` is seconds.
    """

    floor: int = 4
    start: int = 32
    ceiling: int = 512
    prefill_busy: int = 1
    prefill_idle: int = 8
    prefill_tokens: int = 8192
    itl_target: float = ITL_TARGET


class SharedEngine:
    """The pacer of a target that serves both lanes.

    ``waiting`` says who is at the target now; None, that nothing is known: then somebody is assumed
    to be. ``cap`` is how many rows the gaps between tokens allow: those of interactive calls, and
    while there is none those of rows, so that who comes next finds short ones. ``room`` is what the
    engine itself has room for.

    While ``late`` says that a deadline will be missed, offline work yields less: rows do not wait
    for others' first tokens, one more may be without its own, and the cap is at least its start.

    All caps are those of the engine. Of them ``share`` is ours, when other dispatchers use it too.
    """

    def __init__(
        self,
        caps: Caps,
        waiting: Callable[[], Waiting | None],
        clock: Clock,
        late: Callable[[], bool] = lambda: False,
        share: Share = WHOLE,
    ) -> None:
        self._caps = caps
        self._waiting = waiting
        self._late = late
        self._clock = clock
        self._part = share
        self._started_at = self._met_at = clock.monotonic()
        self._running = 0
        self._gap = 0.0
        self._ttft = 0.0
        self.cap = RowCap(caps.start, caps.floor, caps.ceiling, caps.itl_target, self._started_at)
        self.room = EngineRoom()

    def window(self) -> int:
        """Rows that may be in flight now."""
        return self._part.window(self._cap())

    def places(self, running: int, prefilling: int, tokens: int = 0) -> int:
        """How many more rows may start; ``tokens`` is the size of the prompts of ``prefilling``."""
        self._running = running + self._part.beside()
        free = self._part.rows(self._cap(), running)
        if free <= 0:
            if running >= self.window():
                self.cap.used_up()
            return 0
        waiting = self._waiting()
        if waiting is None or waiting.calls:
            if waiting is not None and waiting.prefilling and not self._pressed():
                return 0
            allowed = self._caps.prefill_busy + self._late()
            return max(0, min(free, self._part.prompts(allowed, prefilling)))
        more = int(tokens < self._part.tokens(self._caps.prefill_tokens))
        idle = self._part.prompts(self._caps.prefill_idle, prefilling)
        return max(0, min(free, max(idle, more)))

    def caps(self) -> CapsNow:
        """What was found, and the gate that holds now."""
        waiting = self._waiting()
        if waiting is None or waiting.calls:
            prompts = self._caps.prefill_busy + self._late()
        else:
            prompts = self._caps.prefill_idle
        return CapsNow(self._cap(), self.window(), prompts, self._ttft or None, self._gap or None)

    def started(self) -> None:
        """A row starts."""
        self._started_at = self._clock.monotonic()

    def makes_way(self, waited: float, tokens: int, ahead: int) -> bool:
        """Whether a row without a token is to be taken back, now that an interactive call came.

        Its prompt of ``tokens`` has waited for so many seconds, with ``ahead`` others before it. A
        row that is most of the way through its prompt is let go on, and so are all that are late,
        and one whose prompt is a matter of a step or two: no step is stopped, and the word of the
        caller comes up to 50 ms late, so that taking it back would save nobody time.
        """
        if self._late():
            return False
        expected = self.room.expected(tokens)
        slow = expected >= _QUICK_SECONDS
        return ahead >= self._caps.prefill_busy or (slow and waited < _EARLY * expected)

    def first_token(self, waited: float, tokens: int, running: int) -> None:
        """A prompt of ``tokens`` waited so many seconds; ``running`` rows are in flight."""
        self.room.first_token(waited, tokens, running + self._part.beside())

    def heard(self, load: TargetLoad) -> None:
        """What a gateway says of interactive calls here: its fresh means count."""
        if load.calls:
            self._met_at = self._clock.monotonic()
        if load.ttft_s is not None:
            self._ttft = _recent(self._ttft, load.ttft_s)
        if load.itl_s is not None:
            self._gap = _recent(self._gap, load.itl_s)
            self.cap.gap(load.itl_s, self._running, self._clock.monotonic())

    def told(self, load: EngineLoad, running: int) -> None:
        """What the engine says of itself, with ``running`` of our rows in flight."""
        self.room.told(load.kv_use, load.waiting, running + self._part.beside())

    def ended(self, seconds: float, gap: float | None) -> None:
        """A row was in flight for so long; its gap counts if nobody else was there all the time."""
        self.cap.ended(seconds)
        now, waiting = self._clock.monotonic(), self._waiting()
        if waiting is None or waiting.calls:
            self._met_at = now
        elif gap is not None and now - self._met_at >= seconds:
            self.cap.gap(gap, self._running, now)

    def _cap(self) -> int:
        rows = max(self.cap.rows, self._caps.start) if self._late() else self.cap.rows
        return max(1, int(min(rows, self.room.rows)))

    def _pressed(self) -> bool:
        """Late work does not wait, and calls that never stop coming do not stop any for good.

        Nothing is held longer than ten times what such calls usually wait for a first token.
        """
        longest = min(_LONGEST_HOLD, _USUAL_WAITS * self._ttft or _LONGEST_HOLD)
        return self._late() or self._clock.monotonic() - self._started_at > longest


def _recent(mean: float, value: float) -> float:
    return mean + _MEMORY * (value - mean) if mean else value
