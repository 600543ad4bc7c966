"""JSON that orjson alone would change or refuse: long integers, and halves of surrogate pairs.

An integer beyond 64 bits would come as a float. Half of a pair, as an escape, is valid JSON,
and servers send it where a token ends in the middle of a character. Both are rare: the first is
looked for at next to no cost, the second is seen when reading or writing fails.
"""

import json
import math
from typing import Any, NoReturn

import orjson

_FIRST_LONG = 2.0**63
_SHORT = 2048
_FEW = 32
_EXACT = frozenset({str, int, bool, type(None)})
#: The shortest integer beyond 64 bits has as many digits, so one lies at each such distance.
_EACH_19TH = slice(18, None, 19)
_NO_DIGITS = bytes(set(range(256)) - set(b"0123456789"))


def loads(text: bytes) -> Any:
    """As ``orjson.loads``, with halves of surrogate pairs as they are. Raises ValueError."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        if "surrogate" not in error.msg:
            raise
        return _slowly(text)


def loads_exactly(text: bytes) -> Any:
    """As ``loads``, with integers beyond 64 bits as they are, too. Raises ValueError."""
    return with_long_integers(text, loads(text))


def with_long_integers(text: bytes, value: Any) -> Any:
    """``value``, which orjson read from ``text``, with integers beyond 64 bits as they are."""
    if len(text) <= _SHORT and not text[_EACH_19TH].translate(None, _NO_DIGITS):
        return value
    return _slowly(text) if _holds_large_float(value) else value


def dumps(value: Any) -> bytes:
    """As ``orjson.dumps``; what that does not take is written with escapes. Raises TypeError."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError as error:
        return _written(value, error)


def dumps_ordered(value: Any) -> bytes:
    """As ``dumps``, members by their names: equal for equal values."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError as error:
        return _written(value, error, ordered=True)


def is_too_deep(error: orjson.JSONEncodeError) -> bool:
    """Whether a value could not be written because of its depth."""
    return str(error).startswith("Recursion")


def readable(value: Any) -> Any:
    """``value`` in texts that UTF-8 has: pairs that came in halves are joined, lone halves lost."""
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, dict):
        return {readable(name): readable(item) for name, item in value.items()}
    return [readable(item) for item in value] if isinstance(value, list) else value


def _holds_large_float(value: Any) -> bool:
    found = [value]
    for item in found:
        kind = type(item)
        if kind is dict:
            found += item.values()
        elif kind is list:
            if len(item) < _FEW or not _EXACT.issuperset(map(type, item)):
                found += item
        elif kind is float and not -_FIRST_LONG < item < _FIRST_LONG:
            return True
    return False


def _written(value: Any, error: orjson.JSONEncodeError, *, ordered: bool = False) -> bytes:
    if is_too_deep(error):
        raise error
    return json.dumps(value, separators=(",", ":"), sort_keys=ordered).encode()


def _slowly(text: bytes) -> Any:
    try:
        return json.loads(text.decode(), parse_float=_finite, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refuse(text)


def _refuse(text: str) -> NoReturn:
    raise ValueError(f"not JSON: {text[:16]}")
