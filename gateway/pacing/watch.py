"""An engine seen from its streams while it works: its step time, and which flags would suit it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from gateway.core.clock import Clock
from gateway.core.targets import EngineLoad
from gateway.core.usage import Usage
from gateway.pacing.advice import Advice, EngineFlags, OfflineLoad, advise
from gateway.pacing.step_time import StepSample, StepTime, StepTimeFit
from gateway.pacing.streams import StreamSampler

_LEAST_SAMPLES: Final = 20
_LEAST_USE: Final = 0.05
_MEMORY: Final = 0.1
_NAMES: Final = ("a", "b", "c", "d")


@dataclass(frozen=True, slots=True)
class Finding:
    """A step time from so many samples, and what follows from it for ``itl_target`` seconds."""

    samples: int
    step: StepTime
    advice: Advice
    itl_target: float

    def as_json(self) -> dict[str, Any]:
        """For programs; times in milliseconds."""
        advice = self.advice
        return {
            "samples": self.samples,
            "step_ms": {name: round(1000 * getattr(self.step, name), 6) for name in _NAMES},
            "itl_target_ms": round(1000 * self.itl_target, 1),
            "reached": advice.reached,
            "flags": advice.command(),
            "longest_step_ms": {
                "now": round(1000 * advice.gap_now, 1),
                "then": round(1000 * advice.gap_then, 1),
            },
            "offline_cost": round(advice.cost, 3),
        }


class EngineWatch:
    """Told of every token of our rows at one engine, which was started with ``flags``.

    ``beside`` are the sequences of others that decode there. They are counted as rows like ours;
    what they prefill is not seen.
    """

    def __init__(
        self, flags: EngineFlags, itl_target: float, beside: Callable[[], float], clock: Clock
    ) -> None:
        self._flags = flags
        self._itl_target = itl_target
        self._beside = beside
        self._clock = clock
        self._sampler = StreamSampler()
        self._fit = StepTimeFit()
        self._held: dict[object, int] = {}
        self._prompt = 0.0
        self._output = 0.0
        self._cache = float("inf")

    def first(self, stream: object, prompt: int) -> None:
        """The first token of a stream whose prompt had so many tokens."""
        self._held[stream] = prompt + 1
        self._learn(self._sampler.first(stream, prompt, self._clock.monotonic()))

    def token(self, stream: object) -> None:
        """One more."""
        if stream in self._held:
            self._held[stream] += 1
            self._learn(self._sampler.token(stream, self._clock.monotonic()))

    def end(self, stream: object) -> None:
        """The stream is over."""
        if self._held.pop(stream, 0):
            self._sampler.end(stream)

    def done(self, usage: Usage) -> None:
        """A row was answered: its size."""
        share = _MEMORY if self._output else 1.0
        self._prompt += share * (usage.prompt - self._prompt)
        self._output += share * (max(1, usage.completion) - self._output)

    def told(self, load: EngineLoad) -> None:
        """The engine's own word tells how much its cache holds."""
        if self._held and load.kv_use > _LEAST_USE:
            share = (len(self._held) + self._beside()) / len(self._held)
            cache = share * sum(self._held.values()) / load.kv_use
            known = self._cache != float("inf")
            self._cache = self._cache + _MEMORY * (cache - self._cache) if known else cache

    def finding(self) -> Finding | None:
        """None while too little was seen."""
        if self._fit.samples < _LEAST_SAMPLES or not self._output:
            return None
        load = OfflineLoad(self._prompt, self._output, self._cache)
        step = self._fit.found
        advice = advise(step, load, self._flags, self._itl_target)
        return Finding(self._fit.samples, step, advice, self._itl_target)

    def _learn(self, sample: StepSample | None) -> None:
        if sample is None or not sample.rows:
            return
        rows = sample.rows + self._beside()
        kv = sample.kv * rows / sample.rows
        self._fit.learn(StepSample(rows, kv, sample.prefill, sample.seconds))
