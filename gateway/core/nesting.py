"""How deeply JSON may be nested, so that what was read can always be written again."""

from typing import Any

import orjson

from gateway.core.exact_json import is_too_deep

#: Levels of objects and arrays. Writing ends at 254; the rest is for what we put around a value.
MOST_LEVELS = 200
_AROUND = 54
_SHORT = 900
_LEAST_ARRAYS = (5 * (MOST_LEVELS + 1) - _SHORT) // 3


def too_deep(text: bytes, value: Any) -> bool:
    """Whether ``value``, read from ``text``, has more than 200 levels.

    Of a text with few brackets, which is nearly every one, only these are looked for.
    """
    if _few_brackets(text):
        return False
    for _ in range(_AROUND):
        value = [value]
    try:
        orjson.dumps(value)
    except orjson.JSONEncodeError as error:
        return is_too_deep(error) or _levels(value) > MOST_LEVELS + _AROUND
    return False


def _levels(value: Any) -> int:
    """Levels of a value that has something else which cannot be written."""
    levels, level = 0, [value]
    while level := [v for v in level if isinstance(v, dict | list)]:
        levels += 1
        level = [v for held in level for v in (held.values() if isinstance(held, dict) else held)]
    return levels


def is_deep(text: bytes) -> bool:
    """Whether ``text`` is JSON that could be used if it were not for its depth."""
    try:
        return too_deep(text, orjson.loads(text))
    except orjson.JSONDecodeError as error:
        return is_depth_fault(error)


def _few_brackets(text: bytes) -> bool:
    """Whether there are at most 200. In a long text a byte is found sooner than it is counted."""
    if len(text) <= _SHORT:
        # A level that is an object takes five bytes, so some must be arrays.
        return (
            text.count(b"[") < _LEAST_ARRAYS or text.count(b"{") + text.count(b"[") <= MOST_LEVELS
        )
    left = MOST_LEVELS
    for bracket in (b"{", b"["):
        at = text.find(bracket)
        while at >= 0:
            if not left:
                return False
            left -= 1
            at = text.find(bracket, at + 1)
    return True


def is_depth_fault(error: orjson.JSONDecodeError) -> bool:
    """Whether a text could not be read because of its depth alone."""
    return error.msg.startswith("depth limit")
