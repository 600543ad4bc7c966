"""How fast the rows of a shard are done, as far as this process sees."""

import math
from dataclasses import dataclass

from gateway.core.clock import Clock

_MEMORY_SECONDS = 30.0
_LONGEST_GAP = 5.0
_LEAST_SECONDS = 5.0


@dataclass(slots=True)
class _Work:
    """Tokens and the seconds they took, older ones counting less."""

    last: float
    tokens: float = 0.0
    seconds: float = 0.0


class Speed:
    """A moving average over half a minute of work; a gap of more than 5 s is no work."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._work: dict[str, _Work] = {}

    def note(self, shard: str, tokens: int) -> None:
        """So many tokens were delivered just now."""
        now = self._clock.monotonic()
        work = self._work.get(shard)
        if work is None:
            self._work[shard] = _Work(now)
            return
        gap = min(now - work.last, _LONGEST_GAP)
        kept = math.exp(-gap / _MEMORY_SECONDS)
        work.last = now
        work.tokens = kept * work.tokens + tokens
        work.seconds = kept * work.seconds + gap

    def rate(self, shard: str) -> float:
        """Tokens in a second; 0 until 5 seconds of work were seen."""
        work = self._work.get(shard)
        if work is None or work.seconds < _LEAST_SECONDS:
            return 0.0
        return work.tokens / work.seconds
