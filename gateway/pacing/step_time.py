"""How long an engine's step takes, learned from outside: from the streams it sends."""

from dataclasses import dataclass
from statistics import median
from typing import Final

from gateway.core.least_squares import ForgetfulFit

_FORGET = 0.995
_TRUST = 0.01
_HICCUP = 3.0
_FAR: Final = 0.2
_MANY: Final = 12
_KEPT: Final = 0.1
_SCALE = (1.0, 32.0, 65536.0, 256.0)
# A data-centre GPU with a small model; a few samples outweigh it.
_START = (0.01, 0.001, 0.003, 0.012)


@dataclass(frozen=True, slots=True)
class StepSample:
    """Means over some steps: rows that decode, tokens in their cache, prompt tokens, seconds."""

    rows: float
    kv: float
    prefill: float
    seconds: float


@dataclass(frozen=True, slots=True)
class StepTime:
    """``seconds = a + b * rows + c * kv + d * prefill``."""

    a: float
    b: float
    c: float
    d: float

    def seconds(self, rows: float, kv: float, prefill: float) -> float:
        """Of one step."""
        return self.a + self.b * rows + self.c * kv + self.d * prefill


class StepTimeFit:
    """Fits a StepTime to samples, newer ones first.

    Many samples in a row that are a fifth off, all to one side, are no noise: the engine became
    slower or faster. It is so in all that it does, until newer samples say more.
    """

    def __init__(self) -> None:
        self._fit = ForgetfulFit(_START, forget=_FORGET, trust=_TRUST)
        self._off: list[float] = []
        self.samples = 0

    def learn(self, sample: StepSample) -> None:
        """Take a sample into account; of a hiccup on the way, only a part."""
        self.samples += 1
        x = (1.0, sample.rows / _SCALE[1], sample.kv / _SCALE[2], sample.prefill / _SCALE[3])
        expected = self._fit.predict(x)
        seconds = min(sample.seconds, _HICCUP * expected)
        self._fit.learn(x, seconds)
        self._notice(seconds / expected)

    def _notice(self, ratio: float) -> None:
        """A sample took ``ratio`` times as long as was expected."""
        if abs(ratio - 1) < _FAR or (self._off and (ratio > 1) != (self._off[-1] > 1)):
            self._off.clear()
        if abs(ratio - 1) >= _FAR:
            self._off.append(ratio)
        if len(self._off) == _MANY:
            self._fit.turn(median(self._off), _KEPT)
            self._off.clear()

    @property
    def found(self) -> StepTime:
        """The fit so far."""
        return StepTime(*(w / scale for w, scale in zip(self._fit.weights, _SCALE, strict=True)))
