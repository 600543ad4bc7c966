"""What a request asks of the sampler, checked."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gateway.core.errors import InvalidRequest, InvalidType

_MOST_STOPS = 16
_MOST_LOGPROBS = 20
_COLDEST = 1e-4  # below, only the best token has a chance


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """Sampling of one sequence; ``logprobs`` is None, or how many alternatives to report."""

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    seed: int | None = None
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    logprobs: int | None = None
    stop: Sequence[str] = ()
    ignore_eos: bool = False

    @property
    def greedy(self) -> bool:
        """Whether the most likely token is taken."""
        return self.temperature < _COLDEST

    @property
    def filtered(self) -> bool:
        """Whether only some of the tokens may be drawn."""
        return self.top_p < 1 or self.top_k > 0 or self.min_p > 0

    @property
    def penalised(self) -> bool:
        """Whether tokens so far or a bias change the logits."""
        return bool(
            self.presence_penalty
            or self.frequency_penalty
            or self.repetition_penalty != 1
            or self.logit_bias
        )


def read_sampling(body: Mapping[str, Any], logprobs: int | None) -> SamplingParams:
    """The sampling members of a chat or completions body.

    Raises InvalidType or InvalidRequest naming the member.
    """
    seed = body.get("seed")
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int)):
        raise InvalidType("seed must be an integer.", param="seed")
    return SamplingParams(
        temperature=number(body, "temperature", 1.0, 0, 2),
        top_p=number(body, "top_p", 1.0, 0, 1),
        top_k=int(number(body, "top_k", 0, -1, 1_000_000)),
        min_p=number(body, "min_p", 0.0, 0, 1),
        seed=seed,
        presence_penalty=number(body, "presence_penalty", 0.0, -2, 2),
        frequency_penalty=number(body, "frequency_penalty", 0.0, -2, 2),
        repetition_penalty=number(body, "repetition_penalty", 1.0, 0.01, 10),
        logit_bias=_bias(body.get("logit_bias")),
        logprobs=logprobs,
        stop=_stops(body.get("stop")),
        ignore_eos=body.get("ignore_eos") is True,
    )


def number(body: Mapping[str, Any], name: str, default: float, low: float, high: float) -> float:
    """A number member within bounds; null and absent are the default."""
    value = body.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InvalidType(f"{name} must be a number.", param=name)
    if not low <= value <= high:
        code = f"decimal_{'below_min' if value < low else 'above_max'}_value"
        raise InvalidRequest(f"{name} must be from {low} to {high}.", param=name, code=code)
    return value


def whole(body: Mapping[str, Any], name: str, low: int, high: int) -> int | None:
    """An integer member within bounds; null and absent are None."""
    value = body.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidType(f"{name} must be an integer.", param=name)
    if not low <= value <= high:
        code = f"integer_{'below_min' if value < low else 'above_max'}_value"
        raise InvalidRequest(f"{name} must be from {low} to {high}.", param=name, code=code)
    return value


def alternatives(body: Mapping[str, Any]) -> int | None:
    """Chat: ``logprobs`` with ``top_logprobs``."""
    top = whole(body, "top_logprobs", 0, _MOST_LOGPROBS)
    return (top or 0) if body.get("logprobs") is True else None


def _stops(value: object) -> tuple[str, ...]:
    stops = [value] if isinstance(value, str) else value
    if stops is None:
        return ()
    if not isinstance(stops, list) or any(not isinstance(stop, str) for stop in stops):
        raise InvalidType("stop must be a string or an array of strings.", param="stop")
    if len(stops) > _MOST_STOPS:
        raise InvalidRequest(f"stop has more than {_MOST_STOPS} strings.", param="stop")
    return tuple(stops)


def _bias(value: object) -> dict[int, float]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InvalidType("logit_bias must be an object.", param="logit_bias")
    try:
        return {int(token): float(bias) for token, bias in value.items()}
    except (TypeError, ValueError):
        message = "logit_bias maps token ids to numbers."
        raise InvalidType(message, param="logit_bias") from None
