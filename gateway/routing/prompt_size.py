"""How long a prompt is at least, told from its texts alone."""

from collections.abc import Mapping
from typing import Any

_CHARS_PER_TOKEN = 6  # more than texts have: only what is clearly too long is kept back


def least_tokens(members: Mapping[str, Any]) -> int:
    """The fewest tokens that the texts of a prompt can be expected to have."""
    prompt = members.get("messages") or members.get("prompt") or members.get("input")
    return _characters(prompt) // _CHARS_PER_TOKEN


def _characters(value: Any) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, list):
        if value and isinstance(value[0], int):  # tokens, perhaps millions
            return 0
        return sum(_characters(item) for item in value)
    if isinstance(value, dict):
        return _characters(value.get("content") or value.get("text"))
    return 0
