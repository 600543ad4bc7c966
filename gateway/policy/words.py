"""The reasons of pydantic in the words of a policy file."""

from collections.abc import Mapping
from typing import Any

_DURATION = "a duration is seconds, or text such as 250ms, 30s, 2m, 24h"
# The kind's first word → what belongs there.
_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "finite": "a number with an end",
    "bool": "true or false",
    "string": "text",
    "literal": "{expected}",
    "enum": "{expected}",
    "list": "a list, as in [a, b]",
    "tuple": "a list, as in [a, b]",
}
_BOUNDS = {
    "greater_than": "above {gt:,}",
    "greater_than_equal": "at least {ge:,}",
    "less_than": "below {lt:,}",
    "less_than_equal": "at most {le:,}",
}


def reason(kind: str, context: Mapping[str, Any], known: list[str]) -> str | None:
    """What a value must be; ``known`` are the keys where a mapping belongs. None: unknown here."""
    if kind in {"model_type", "model_attributes_type", "dict_type", "mapping_type"}:
        return f"must be a mapping of {', '.join(known)}" if known else "must be a mapping"
    if kind == "string_pattern_mismatch":
        return f"must begin with {str(context['pattern']).removeprefix('^')}"
    wanted = _BOUNDS.get(kind) or _KINDS.get(kind.partition("_")[0])
    return None if wanted is None else f"must be {wanted.format(**_plain(context))}"


def duration_reason(kind: str, context: Mapping[str, Any]) -> str:
    """The same of a duration: how one is written, and the bound that it does not keep."""
    if kind == "greater_than":
        return f"{_DURATION}, and above {context['gt']:g}"
    if kind == "less_than_equal":
        return f"{_DURATION}, and at most {_long(context['le'])}"
    return f"{_DURATION}, and not negative"


def _long(seconds: float) -> str:
    days = seconds / 86_400
    return f"{days:g}d" if days >= 1 else f"{seconds:g}s"


def _plain(context: Mapping[str, Any]) -> dict[str, Any]:
    """Bounds as they would be written: 1, not 1.0."""
    return {
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name, value in context.items()
    }
