"""JSON that orjson alone would change or refuse."""

import json
from typing import Any

import orjson
import pytest

from gateway.core.exact_json import (
    dumps,
    dumps_ordered,
    is_too_deep,
    loads,
    loads_exactly,
    readable,
    with_long_integers,
)

LONG = 123456789012345678901234567890


@pytest.mark.parametrize(
    "text",
    [
        b'{"seed":%d}' % LONG,
        b'{"seed":-9223372036854775809}',
        b'{"seed":18446744073709551616,"x":"%b"}' % (b"text " * 1000),
        b'{"a":[{"b":[1,{"c":%d}]}]}' % LONG,
        b'{"a":[{"b":"%b"},[[%d]]]}' % (b"x" * 5000, LONG),
    ],
)
def test_long_integers_stay(text: bytes) -> None:
    """Wherever they stand, however long the text; they are written as they came."""
    value = with_long_integers(text, orjson.loads(text))
    assert value == json.loads(text)
    assert dumps(value) == text


def test_both_at_once() -> None:
    """A text that has long integers or halves of pairs, or both, is read as it is."""
    half = b'{"a":"\\ud83d","b":%d}'
    for text in (b'{"a":1}', b'{"a":%d}' % LONG, half % 1, half % LONG):
        assert loads_exactly(text) == json.loads(text)


def test_every_place_of_a_short_text_is_looked_at() -> None:
    """The digits may begin anywhere."""
    for shift in range(40):
        text = b'{"%b":9999999999999999999999}' % (b"x" * shift)
        value = with_long_integers(text, orjson.loads(text))
        assert list(value.values()) == [9999999999999999999999]


def test_what_is_no_long_integer_is_left_alone() -> None:
    """Floats, large but exact integers and texts of digits: the value is the same object."""
    value = {"a": 0.5, "b": 2**64 - 1, "c": -(2**63), "d": "1" * 40, "e": [1, {"f": None}]}
    text = orjson.dumps(value)
    assert with_long_integers(text, value) is value
    assert with_long_integers(b'{"a":1e30}', {"a": 1e30}) == {"a": 1e30}


@pytest.mark.parametrize("text", [r"hi \ud83d", r"\ude42", r"\ud83d x"])
def test_halves_of_pairs(text: str) -> None:
    """They are read and written as they came."""
    data = f'{{"content":"{text}","é":1}}'.encode()
    value = loads(data)
    assert value == json.loads(data)
    assert json.loads(dumps(value)) == value


@pytest.mark.parametrize(
    "text",
    [
        b"{",
        b'{"a":"\\ud83d"',
        b'{"a":"\\ud83d","b":NaN}',
        b'{"a":"\\ud83d","b":1e999}',
        b'{"a":"\\ud83d\xff"}',
        b'{"a":"\\ud83d","b":' + b"[" * 900 + b"]" * 900 + b"}\xff",
        b'["\\ud83d",' + b"[" * 100_000,
    ],
)
def test_what_is_no_json(text: bytes) -> None:
    """Reading it in another way makes it none."""
    with pytest.raises(ValueError):  # noqa: PT011 - whatever the parser says
        loads(text)


def test_members_in_order() -> None:
    """Both writers know it."""
    assert dumps_ordered({"b": 1, "a": 2}) == b'{"a":2,"b":1}'
    assert dumps_ordered({"b": LONG, "a": 2}) == b'{"a":2,"b":%d}' % LONG


def test_depth_is_told_from_other_faults() -> None:
    """What is too deep is not written in another way."""
    value: Any = 1
    for _ in range(300):
        value = [value]
    with pytest.raises(orjson.JSONEncodeError) as caught:
        dumps(value)
    assert is_too_deep(caught.value)


def test_readable() -> None:
    """Halves that meet become a character, others the sign for one that was lost."""
    value = {"a": ["\ud83d\ude42", "x\ud83d", 1, None], "\ude42": "é🙂"}
    assert readable(value) == {"a": ["🙂", "x\ufffd", 1, None], "\ufffd": "é🙂"}
