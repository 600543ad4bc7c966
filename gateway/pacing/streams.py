"""Samples of an engine's steps from the streams that it sends.

A row that decodes has a token each step. So the row with the most tokens of a moment counts the
steps in it, the tokens of all rows over the steps are the rows, and the prompts whose first token
came in it, over the steps, are what was read beside them.
"""

from gateway.pacing.step_time import StepSample

# Shorter, and a prompt counts where it ends, not where it was read.
_SECONDS = 2.0
_LEAST_STEPS = 4
_WHOLE = 0.9


class StreamSampler:
    """Told of every token at one engine, whichever lane it is of."""

    def __init__(self) -> None:
        self._started = 0.0
        self._counts: dict[object, int] = {}
        self._context: dict[object, int] = {}
        self._firsts: dict[object, float] = {}
        self._lasts: dict[object, float] = {}
        self._held = 0
        self._kv = 0.0
        self._prefill = 0

    def first(self, stream: object, prompt: int, now: float) -> StepSample | None:
        """The first token of a stream whose prompt had so many tokens."""
        self._prefill += prompt
        self._context[stream] = prompt
        self._held += prompt
        return self.token(stream, now)

    def token(self, stream: object, now: float) -> StepSample | None:
        """One more token; a sample now and then."""
        self._held += 1
        self._context[stream] += 1
        self._kv += self._held
        self._counts[stream] = self._counts.get(stream, 0) + 1
        self._firsts.setdefault(stream, now)
        self._lasts[stream] = now
        return self._sample(now) if now - self._started >= _SECONDS else None

    def end(self, stream: object) -> None:
        """The stream is over."""
        self._held -= self._context.pop(stream, 0)

    def _sample(self, now: float) -> StepSample | None:
        """None when no row decoded all the time: then the steps cannot be counted."""
        longest = max(self._counts, key=lambda stream: self._counts[stream])
        steps = self._counts[longest] - 1
        lasted = self._lasts[longest] - self._firsts[longest]
        tokens, prefill = sum(self._counts.values()), self._prefill
        kv, seconds = self._kv / tokens, now - self._started
        self._started, self._kv, self._prefill = now, 0.0, 0
        for kept in (self._counts, self._firsts, self._lasts):
            kept.clear()
        if steps < _LEAST_STEPS or lasted < _WHOLE * seconds:
            return None
        return StepSample(tokens / (steps + 1), kv, prefill / (steps + 1), lasted / steps)
