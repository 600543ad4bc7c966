"""Large JSON, read and written piece by piece.

orjson lets no other thread run while it works, so a body of 30 MB would hold up every stream of the
process, thread or not. Its long array (messages, inputs, vectors) is therefore taken in pieces.

A piece ends at a comma where ``[`` + piece + ``]`` is valid JSON: JSON is read from left to
right, so that comma is then one between items of the array, whatever stands before and behind it.
"""

import re
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any

from gateway.core.exact_json import dumps
from gateway.core.nesting import too_deep

#: Bytes. Reading and checking so much takes up to 3 ms (many short messages), and a thread costs
#: 0.1 ms: above it the streams of others are not held up.
LARGE = 128 * 1024
_PIECE = 64 * 1024
_LONGER_PIECES = (_PIECE, 4 * _PIECE, 16 * _PIECE)
_TRIES = 8
_FEW = 100
_MOST_TEXTS = 100_000
_ARRAY = re.compile(rb'"(messages|input|prompt|data|choices|output)"[ \t\r\n]*:[ \t\r\n]*\[')
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_ENDS = {b"{": re.compile(rb"\}[ \t\r\n]*,"), b"[": re.compile(rb"\][ \t\r\n]*,")}
_TEXT_END = re.compile(rb'"[ \t\r\n]*,')
_ANY_END = re.compile(rb",")

Read = Callable[[bytes], Any]


class TooManyValues(ValueError):
    """What is left to be read in one piece has too many values."""


def read_large(text: bytes, read: Read, most: int | None = None) -> tuple[Any, bool]:
    """The value that ``read`` finds in ``text``, and whether it is nested too deeply.

    Raises ValueError, as ``read`` does; TooManyValues when one piece would have more than ``most``.
    """
    name, start = _long_array(text, read)
    items: list[Any] = []
    at, deep = start, False
    while name and (cut := _next(text, at, read)) is not None:
        piece, values, at = cut
        deep = deep or too_deep(piece, [values])
        items += values
    rest = text[:start] + text[at:] if items else text
    if items and b'"%b"' % name.encode() in text[at:]:  # then the name may stand there twice
        items, rest = [], text
    if most is not None and has_more(rest, b",", most):
        raise TooManyValues
    value = read(rest)
    if items:
        if not value[name]:
            raise ValueError("a comma before the end of an array")
        items += value[name]
        value[name] = items
    return value, deep or too_deep(rest, value)


def has_more(text: bytes, signs: bytes, most: int) -> bool:
    """Whether more than ``most`` of these bytes stand outside of the texts in ``text``.

    Of more than 100,000 texts with so many signs in and around them it is assumed.
    """
    found = at = 0
    while at < len(text) and found <= most:  # at first of all of them, which is quick
        found += _count(text, signs, at, at + LARGE)
        at += LARGE
    if found <= most:
        return False
    found = at = texts = 0
    while at < len(text) and found <= most:
        quote = text.find(b'"', at, at + LARGE)
        end = at + LARGE if quote < 0 else quote
        found += _count(text, signs, at, end)
        at = end
        if quote >= 0:
            texts += 1
            if texts > _MOST_TEXTS:
                return True
            string = _STRING.match(text, quote)
            at = len(text) if string is None else string.end()
    return found > most


def _count(text: bytes, signs: bytes, start: int, end: int) -> int:
    return sum(text.count(sign, start, end) for sign in signs)


def write_large(members: Mapping[str, Any], size: int) -> bytes:
    """As ``dumps``; ``size`` is about how long it will be."""
    pieces = size // _PIECE + 1
    written = [b"%b:%b" % (dumps(k), _written(v, pieces)) for k, v in members.items()]
    return b"{%b}" % b",".join(written)


def let_go(value: dict[str, Any]) -> None:
    """Empty the arrays of a large value, a few items at a time: freeing millions holds all up."""
    for item in value.values():
        if isinstance(item, list):
            while item:
                del item[-_FEW:]


def _written(value: Any, pieces: int) -> bytes:
    if not isinstance(value, list) or not value:
        return dumps(value)
    step = len(value) // pieces + 1
    parts = [dumps(value[at : at + step])[1:-1] for at in range(0, len(value), step)]
    return b"[%b]" % b",".join(parts)


def _long_array(text: bytes, read: Read) -> tuple[str, int]:
    """Name and start of the array that is a member of the object and begins early."""
    for found in islice(_ARRAY.finditer(text, 0, LARGE), _TRIES):
        try:
            read(text[: found.end()] + b"]}")
        except ValueError:
            continue
        return found[1].decode(), found.end()
    return "", 0


def _next(text: bytes, at: int, read: Read) -> tuple[bytes, list[Any], int] | None:
    """The next piece, its items and the place behind its comma; None: the rest is one piece."""
    if len(text) - at < 2 * _PIECE:
        return None
    first = text[at : at + _PIECE].lstrip()[:1]
    ends = _ENDS.get(first) or (_TEXT_END if first == b'"' else _ANY_END)
    for size in _LONGER_PIECES:
        tried = 0
        for end in ends.finditer(text, at + size, at + 2 * size):
            piece = text[at : end.end() - 1]
            try:
                return piece, read(b"[%b]" % piece), end.end()
            except ValueError:
                tried += 1
            if tried == _TRIES:
                break
    return None
