"""How long a step takes, learned from the steps that were run."""

from dataclasses import dataclass

from gateway.core.least_squares import ForgetfulFit

_FORGET = 0.95
_SOLVE_EVERY = 4
_HICCUP = 4.0
_SCALE = (1.0, 32.0, 4096.0, 128.0)
_START = (0.008, 0.016, 0.006, 0.04)
_TRUST = 0.3


@dataclass(frozen=True, slots=True)
class Work:
    """What a step does: ``rows`` that decode, over ``kv`` tokens, beside ``prompt`` tokens."""

    rows: int = 0
    kv: int = 0
    prompt: int = 0


class StepTime:
    """Fits ``seconds = a + b * rows + c * kv + d * prompt`` to recent steps.

    Least squares that forget, held near a usual CPU's figures where the steps say nothing.
    """

    def __init__(self) -> None:
        self._fit = ForgetfulFit(_START, forget=_FORGET, trust=_TRUST, every=_SOLVE_EVERY)

    def predict(self, work: Work) -> float:
        """Seconds of a step."""
        return self._fit.predict(_scaled(work))

    def prompt_within(self, seconds: float) -> int:
        """Prompt tokens that can be read in ``seconds``, beside what is done anyway."""
        return int(max(0.0, seconds) / self._fit.weights[3] * _SCALE[3])

    def learn(self, work: Work, seconds: float) -> None:
        """Take a measured step into account; of a hiccup of the machine, only a part."""
        x = _scaled(work)
        self._fit.learn(x, min(seconds, _HICCUP * self._fit.predict(x)))


def _scaled(work: Work) -> tuple[float, float, float, float]:
    return (1.0, work.rows / _SCALE[1], work.kv / _SCALE[2], work.prompt / _SCALE[3])
