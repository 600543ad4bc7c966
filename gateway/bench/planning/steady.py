"""An engine that is kept full of equal work: how many rows it runs, and how fast.

In the steady state every row that ends is replaced, so that for each decoded token there are
``prompt / output`` prompt tokens to be read. That gives the work of the mean step and the number of
rows at which slots, cache or the step's token budget are used up.
"""

import math
from dataclasses import dataclass
from statistics import NormalDist

from gateway.core.errors import ConfigError
from gateway.simulator.profile import EngineProfile

_LEAST_ROWS = 1.0
_MOST_TOKENS = 1e9
_MOST_CV = 20.0
# exp(-0.577): the mean of the largest of many is at this part of the last one in as many.
_MEAN_LARGEST = 0.56


@dataclass(frozen=True, slots=True)
class Shape:
    """Mean tokens in and out; ``cv`` is the outputs' standard deviation over their mean."""

    prompt: float
    output: float
    cv: float = 0.0

    def __post_init__(self) -> None:
        if not all(1 <= tokens <= _MOST_TOKENS for tokens in (self.prompt, self.output)):
            raise ConfigError(f"Mean tokens in and out are 1 to {_MOST_TOKENS:,.0f}.")
        if not 0 <= self.cv <= _MOST_CV:
            raise ConfigError(f"The variation of lengths is 0 to {_MOST_CV:g}.")

    @property
    def context(self) -> float:
        """Mean tokens in the cache of a row that decodes: long answers are seen more often."""
        return self.prompt + self.output * (1 + self.cv**2) / 2

    def longest(self, rows: float) -> float:
        """The longest output to be expected among ``rows``, if the lengths are log-normal."""
        if rows <= 1:
            return self.output
        sigma = math.sqrt(math.log(1 + self.cv**2))
        return self.output * math.exp(
            sigma * -NormalDist().inv_cdf(_MEAN_LARGEST / rows) - sigma**2 / 2
        )


@dataclass(frozen=True, slots=True)
class Steady:
    """``items`` a second with ``rows`` that decode in steps of ``step`` seconds.

    ``limit`` is what ends the growth of the batch: ``slots``, ``cache`` or ``step budget``;
    ``spent`` the shares of a step that go to weights, computing, cache and host.
    """

    items: float
    rows: float
    step: float
    limit: str
    spent: dict[str, float]

    @property
    def bound(self) -> str:
        """What more of would make it faster."""
        if self.spent["computing"] > 0.5:  # noqa: PLR2004 - most of the time
            return "compute-bound"
        cache = self.limit == "cache" or self.spent["cache"] > self.spent["weights"]
        return "KV-bound" if cache else "weight-bound"


def steady(profile: EngineProfile, shape: Shape, rows: float | None = None) -> Steady:
    """The steady state at full batch, or at ``rows`` when that is less."""
    limits = _limits(profile, shape)
    if rows is not None:
        limits["asked"] = rows
    limit = min(limits, key=lambda name: limits[name])
    count = max(_LEAST_ROWS, limits[limit])
    weights, computing = _computing(profile, shape, count)
    parts = {
        "weights": weights,
        "computing": computing,
        "cache": profile.c * count * shape.context,
        "host": profile.h + profile.row * count,
    }
    step = sum(parts.values())
    spent = {name: part / step for name, part in parts.items()}
    return Steady(1000 * count / (shape.output * step), count, step / 1000, limit, spent)


def _limits(profile: EngineProfile, shape: Shape) -> dict[str, float]:
    """Decoding rows that slots, cache and budget allow."""
    ratio = shape.prompt / shape.output
    budget = profile.max_num_batched_tokens
    # While its prompt is read a row has a slot and decodes nothing.
    reading = max(1.0, shape.prompt / budget) / shape.output
    return {
        "slots": profile.max_num_seqs / (1 + reading),
        "cache": (profile.kv_tokens - shape.prompt / 2) / shape.context,
        "step budget": budget / (1 + ratio),
    }


def _computing(profile: EngineProfile, shape: Shape, rows: float) -> tuple[float, float]:
    """Milliseconds of the mean step that reading the weights and that computing decides about.

    Prompts come in pieces: some steps read one as large as fits, the others none.
    """
    wanted = rows * shape.prompt / shape.output
    room = max(1.0, profile.max_num_batched_tokens - rows)
    piece = max(shape.prompt / math.ceil(shape.prompt / room), min(room, wanted))
    share = min(1.0, wanted / piece)
    weights = computing = 0.0
    for part, tokens in ((share, rows + wanted / share), (1 - share, rows)):
        if profile.b * tokens > profile.a:
            computing += part * profile.b * tokens
        else:
            weights += part * profile.a
    return weights, computing
