"""Tokens of one call, counted once."""

from collections.abc import Mapping
from typing import Any, Final

from gateway.core.values import value

MOST_TOKENS: Final = 2**32 - 1
"""A figure of one call is never larger: sums of billions of calls stay exact everywhere."""


@value
class Usage:
    """Tokens of one call or a sum of calls.

    ``cached`` is part of ``prompt``; ``reasoning`` is part of ``completion``. ``estimated`` says
    that at least one figure was counted by us and not reported by the target.
    """

    prompt: int = 0
    completion: int = 0
    cached: int = 0
    reasoning: int = 0
    estimated: bool = False

    @property
    def total(self) -> int:
        """Prompt plus completion tokens."""
        return self.prompt + self.completion

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.prompt + other.prompt,
            self.completion + other.completion,
            self.cached + other.cached,
            self.reasoning + other.reasoning,
            self.estimated or other.estimated,
        )

    @classmethod
    def from_openai(cls, usage: Mapping[str, Any]) -> "Usage":
        """Read the ``usage`` member of a chat, completions, embeddings or responses answer.

        Figures that are missing, or no counts, are 0, and the usage says that it is estimated.
        """
        return ReportedUsage.of(usage).completed(0, 0)

    def to_openai(self) -> dict[str, Any]:
        """The ``usage`` member of a chat completions answer."""
        return {
            "prompt_tokens": self.prompt,
            "completion_tokens": self.completion,
            "total_tokens": self.total,
            "prompt_tokens_details": {"cached_tokens": self.cached},
            "completion_tokens_details": {"reasoning_tokens": self.reasoning},
        }

    def to_responses(self) -> dict[str, Any]:
        """The ``usage`` member of a response, and of a batch."""
        return {
            "input_tokens": self.prompt,
            "input_tokens_details": {"cached_tokens": self.cached},
            "output_tokens": self.completion,
            "output_tokens_details": {"reasoning_tokens": self.reasoning},
            "total_tokens": self.total,
        }


@value
class ReportedUsage:
    """What a target told of its tokens; None for a figure that it did not tell, or no count.

    A count is a whole number from 0 to MOST_TOKENS; a figure left out is the rest of the total
    where there is a rest. ``bare`` says that completion tokens were not spoken of at all.
    """

    prompt: int | None
    completion: int | None
    cached: int = 0
    reasoning: int = 0
    bare: bool = False

    @classmethod
    def of(cls, usage: Mapping[str, Any]) -> "ReportedUsage":
        """Read the ``usage`` member of any answer."""
        prompt_details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details")
        output_details = usage.get("completion_tokens_details") or usage.get(
            "output_tokens_details"
        )
        prompt = _count(usage, "prompt_tokens", "input_tokens")
        completion = _count(usage, "completion_tokens", "output_tokens")
        if prompt is None or completion is None:
            total = _count(usage, "total_tokens") or 0
            if prompt is None and completion is not None and total > completion:
                prompt = total - completion
            elif completion is None and prompt is not None and total > prompt:
                completion = total - prompt
        return cls(
            prompt,
            completion,
            _count(prompt_details, "cached_tokens")
            or _count(usage, "prompt_cache_hit_tokens")
            or 0,
            _count(output_details, "reasoning_tokens") or 0,
            completion is None and not ("completion_tokens" in usage or "output_tokens" in usage),
        )

    def completed(self, prompt: int, completion: int) -> Usage:
        """As usage, with these estimates where no figure was told.

        Who speaks of no completion tokens and made nothing that could be some, made none.
        """
        if self.prompt is not None and self.completion is not None:
            return Usage(self.prompt, self.completion, self.cached, self.reasoning)
        told_none = self.completion is None and not (self.bare and completion == 0)
        return Usage(
            prompt if self.prompt is None else self.prompt,
            completion if self.completion is None else self.completion,
            self.cached,
            self.reasoning,
            self.prompt is None or told_none,
        )


def usage_member(body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The usage object of an answer, a chunk or an event, wherever the vendor puts it.

    That is ``usage``, ``response.usage`` of a response's events, or ``x_groq.usage``.
    """
    if isinstance(usage := body.get("usage"), dict | Mapping):  # a dict is told at once
        return usage
    for outer in ("response", "x_groq"):
        inner = body.get(outer)
        if isinstance(inner, Mapping) and isinstance(usage := inner.get("usage"), Mapping):
            return usage
    return None


def reported_in(body: Mapping[str, Any]) -> ReportedUsage | None:
    """What an answer, a chunk or an event reports; None when there is no figure in it."""
    usage = usage_member(body)
    if usage is None:
        return None
    reported = ReportedUsage.of(usage)
    return None if reported.prompt is None and reported.completion is None else reported


def _count(source: object, *names: str) -> int | None:
    if source is None or not isinstance(source, dict | Mapping):  # a dict is told at once
        return None
    for name in names:
        figure = source.get(name)
        if type(figure) is not int:  # a bool is none
            if not (isinstance(figure, float) and figure.is_integer()):
                continue
            figure = int(figure)
        if 0 <= figure <= MOST_TOKENS:
            return figure
    return None
