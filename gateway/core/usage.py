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

        Missing or non-integer figures count as 0; an explicit 0 is respected. A figure above
        MOST_TOKENS counts as that.
        """
        prompt_details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details")
        output_details = usage.get("completion_tokens_details") or usage.get(
            "output_tokens_details"
        )
        return cls(
            _count(usage, "prompt_tokens", "input_tokens"),
            _count(usage, "completion_tokens", "output_tokens"),
            _count(prompt_details, "cached_tokens") or _count(usage, "prompt_cache_hit_tokens"),
            _count(output_details, "reasoning_tokens"),
        )

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


def _count(source: object, *names: str) -> int:
    if source is None or not isinstance(source, dict | Mapping):  # a dict is told at once
        return 0
    for name in names:
        value = source.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return min(value, MOST_TOKENS)
    return 0
