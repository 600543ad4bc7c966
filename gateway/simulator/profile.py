"""What an engine on a GPU needs for a step, and how much it holds."""

from dataclasses import dataclass, replace
from typing import Self

from gateway.core.errors import ConfigError

# Beyond these nothing is a measure of an engine; and what is no number at all is not within them.
_MOST = 1e12
_SHORTEST_STEP = 1e-9


@dataclass(frozen=True, slots=True)
class EngineProfile:
    """``step_ms = max(a, b * tokens) + row * decodes + c * cached tokens + h``.

    ``tokens`` are all tokens computed in the step; ``cached tokens`` those that its decoding rows
    read. ``kv_tokens`` fit in the cache beside the weights. ``price`` is an example per hour.
    """

    name: str
    a: float
    b: float
    c: float
    h: float
    kv_tokens: int
    row: float = 0.0
    max_num_seqs: int = 256
    max_num_batched_tokens: int = 512
    price: float = 0.0
    source: str = ""

    def __post_init__(self) -> None:
        if self.max_num_batched_tokens < self.max_num_seqs:
            raise ConfigError("max_num_batched_tokens must be at least max_num_seqs.")
        counts = (self.kv_tokens, self.max_num_seqs, self.max_num_batched_tokens)
        if not all(1 <= count <= _MOST for count in counts):
            raise ConfigError("An engine needs room for a token and for a sequence.")
        if not all(0 <= part <= _MOST for part in (self.a, self.b, self.c, self.h, self.row)):
            raise ConfigError("The parts of a step's time are milliseconds, none below 0.")
        if self.seconds(1, 1, 0) < _SHORTEST_STEP:
            raise ConfigError("A step takes a nanosecond at least.")
        if not 0 <= self.price <= _MOST:
            raise ConfigError("A price is 0 or above.")

    def seconds(self, rows: int, kv: float, prefill: float) -> float:
        """Duration of a step of ``rows`` decodes over ``kv`` tokens beside ``prefill`` tokens."""
        computing = max(self.a, self.b * (rows + prefill))
        return (computing + self.row * rows + self.c * kv + self.h) / 1000

    def with_flags(self, seqs: int | None = None, batched: int | None = None) -> Self:
        """The same engine, started with other flags where they are given."""
        return replace(
            self,
            max_num_seqs=seqs or self.max_num_seqs,
            max_num_batched_tokens=batched or self.max_num_batched_tokens,
        )

    def priced(self, price: float | None) -> Self:
        """The same engine at another price, if one is given."""
        return self if price is None else replace(self, price=price)

    def faster(self, factor: float) -> Self:
        """The same engine, ``factor`` times as fast."""
        return replace(
            self,
            a=self.a / factor,
            b=self.b / factor,
            c=self.c / factor,
            h=self.h / factor,
            row=self.row / factor,
        )


_VIDUR = "operator times published with the Vidur simulator, bf16, one GPU; cache reads estimated"

PROFILES = {
    profile.name: profile
    for profile in (
        EngineProfile("a100-7b", 9.6, 0.0645, 0.000374, 1.0, 108_000, price=2.0, source=_VIDUR),
        EngineProfile("a100-8b", 10.9, 0.070, 0.000093, 1.0, 430_000, price=2.0, source=_VIDUR),
        EngineProfile("h100-7b", 5.8, 0.0207, 0.000228, 1.0, 108_000, price=3.0, source=_VIDUR),
        EngineProfile(
            "h200-8b",
            0.0,
            0.0225,
            0.00002,
            4.75,
            830_000,
            row=0.0325,
            max_num_batched_tokens=8192,
            price=3.5,
            source="fitted to vLLM 0.20 on one H200, Llama-3-8B shape, bf16",
        ),
    )
}


def profile_named(name: str) -> EngineProfile:
    """A profile of the table; raises ConfigError with the names there are."""
    if name not in PROFILES:
        raise ConfigError(f"There is no engine profile {name!r}; there are {', '.join(PROFILES)}.")
    return PROFILES[name]
