"""How many rows an engine has room for: told by its metrics, or noticed from what it does.

An engine that is full says nothing to its clients: it queues them silently. An interactive call
that meets such an engine waits until a row ends, so the last sixth of the room is left free.
"""

import math
from typing import Final

_SHARE: Final = 0.85
_SLOW: Final = 10.0
_SLOW_SECONDS: Final = 2.0
_MEMORY: Final = 0.1
_LEAST_TOKENS: Final = 64
_RELAX: Final = 0.01
_FEW: Final = 4


class EngineRoom:
    """``rows`` may be in flight at once; infinite as long as nothing speaks against it."""

    def __init__(self) -> None:
        self.rows = math.inf
        self._pace: float | None = None

    def expected(self, tokens: int) -> float:
        """Seconds that a prompt of ``tokens`` usually waits; 0 before the first one."""
        return (self._pace or 0.0) * max(tokens, _LEAST_TOKENS)

    def first_token(self, waited: float, tokens: int, running: int) -> None:
        """A prompt of ``tokens`` waited so many seconds; ``running`` rows are in flight.

        One that waits ten times as long as prompts of its size do, and more than 2 seconds, was
        queued: the engine is full. Otherwise the room is tried again, by a hundredth a flight.
        """
        pace = waited / max(tokens, _LEAST_TOKENS)
        if self._pace is None:
            self._pace = pace
        elif waited > _SLOW_SECONDS and pace > _SLOW * self._pace and running > _FEW:
            self.rows = min(self.rows, max(1.0, _SHARE * (running - 1)))
        else:
            self._pace += _MEMORY * (pace - self._pace)
            if running + 1 > self.rows:
                self.rows += _RELAX

    def told(self, kv_usage: float, waiting: float, running: int) -> None:
        """The engine's own word: the share of its KV cache in use, and requests in its queue."""
        if running < _FEW or kv_usage <= 0:
            return
        room = _SHARE * running / kv_usage
        self.rows = min(room, _SHARE * running) if waiting and kv_usage > _SHARE else room
