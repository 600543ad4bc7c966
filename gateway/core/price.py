"""What tokens cost at a target."""

import math
from dataclasses import dataclass
from typing import Final

from gateway.core.usage import Usage

_TOKENS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """Of a million tokens, in whatever currency the policy is written in."""

    input: float
    output: float
    cached: float

    def of(self, usage: Usage) -> float:
        """The cost of one call."""
        fresh = usage.prompt - usage.cached
        tokens = self.input * fresh + self.cached * usage.cached + self.output * usage.completion
        return tokens / _TOKENS

    def most(self, tokens: float) -> float:
        """What so many tokens cost at most, whichever they are."""
        return max(self.input, self.output, self.cached) * tokens / _TOKENS


def millionths(cost: float) -> int:
    """The same in whole numbers, rounded up."""
    return math.ceil(cost * _TOKENS)
