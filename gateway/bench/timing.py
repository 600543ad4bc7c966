"""What a client sees of a streamed answer, in seconds."""

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from gateway.core.usage import Usage


@dataclass(slots=True)
class Timing:
    """One streamed call. ``tokens_at`` are the moments content arrived, after ``started_at``."""

    started_at: float
    tokens_at: list[float] = field(default_factory=list)
    ended_at: float = 0.0
    usage: Usage = field(default_factory=Usage)

    @property
    def ttft(self) -> float:
        """Time to first token; infinite when none came."""
        return self.tokens_at[0] - self.started_at if self.tokens_at else math.inf

    @property
    def gaps(self) -> list[float]:
        """Inter-token delays."""
        moments = self.tokens_at
        return [later - earlier for earlier, later in itertools.pairwise(moments)]

    @property
    def duration(self) -> float:
        """From sending the request to the end of the answer."""
        return self.ended_at - self.started_at


@dataclass(frozen=True, slots=True)
class Spread:
    """Median and 99th percentile (nearest rank) of ``count`` figures."""

    p50: float
    p99: float
    count: int

    @classmethod
    def of(cls, figures: Iterable[float]) -> "Spread":
        """Of any number of figures; of none, not a number."""
        ordered = sorted(figures)
        return cls(percentile(ordered, 50), percentile(ordered, 99), len(ordered))


@dataclass(frozen=True, slots=True)
class Latency:
    """How a set of streamed calls felt."""

    ttft: Spread
    itl: Spread

    @classmethod
    def of(cls, timings: Sequence[Timing]) -> "Latency":
        """Time to first token of each call, and every gap between two tokens."""
        gaps = [gap for timing in timings for gap in timing.gaps]
        return cls(Spread.of(timing.ttft for timing in timings), Spread.of(gaps))


def percentile(ordered: Sequence[float], percent: float) -> float:
    """Nearest-rank percentile of ascending figures."""
    if not ordered:
        return math.nan
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


def total(timings: Iterable[Timing]) -> Usage:
    """Tokens of all calls."""
    return sum((timing.usage for timing in timings), Usage())
