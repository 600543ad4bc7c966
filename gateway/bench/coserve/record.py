"""What a run leaves behind: calls, tokens, samples of steps."""

import math
from array import array
from collections import Counter
from dataclasses import dataclass, field

from gateway.pacing.step_time import StepSample


@dataclass(slots=True, eq=False)
class CallRecord:
    """An interactive call; times are seconds of the run, infinite as long as they did not come."""

    at: float
    prompt: int
    output: int
    first: float = math.inf
    last: float = math.inf
    tokens: int = 0
    ended: bool = False
    failed: bool = False

    @property
    def ttft(self) -> float:
        """Time to the first token."""
        return self.first - self.at

    @property
    def itl(self) -> float:
        """Mean gap between its tokens; 0 for a single one."""
        return (self.last - self.first) / (self.tokens - 1) if self.tokens > 1 else 0.0


@dataclass(slots=True)
class Record:
    """One run.

    ``gaps`` are all delays between tokens of interactive calls; ``windows`` the rows that lanes
    allowed and had in flight, and ``progress`` the offline tokens, second by second; ``finished``
    the moment the last row of a job ended, ``ended`` how many did.
    """

    calls: list[CallRecord] = field(default_factory=list)
    gaps: "array[float]" = field(default_factory=lambda: array("d"))
    prompt_tokens: int = 0
    output_tokens: int = 0
    rows: int = 0
    taken_back: int = 0
    preemptions: int = 0
    busy: float = 0.0
    samples: list[StepSample] = field(default_factory=list)
    windows: list[tuple[float, int, int]] = field(default_factory=list)
    progress: list[tuple[float, int]] = field(default_factory=list)
    finished: dict[int, float] = field(default_factory=dict)
    ended: Counter[int] = field(default_factory=Counter)

    def token(self, call: CallRecord, now: float) -> None:
        """A call has one more token."""
        if call.tokens:
            self.gaps.append(now - call.last)
        else:
            call.first = now
        call.last = now
        call.tokens += 1
