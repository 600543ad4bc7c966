"""Large JSON in pieces."""

import time
from typing import Any

import orjson
import pytest

from gateway.core.large_json import LARGE, TooManyValues, has_more, let_go, read_large, write_large

TEXT = 'say "},{" and \\ é ],[ '


def _message(at: int) -> dict[str, Any]:
    parts = [{"type": "text", "text": TEXT * (at % 7)}, {"type": "x", "n": [at, {"y": []}]}]
    return {"role": "user", "content": parts if at % 3 else TEXT}


VALUES: list[dict[str, Any]] = [
    {"model": "m", "messages": [_message(n) for n in range(5000)], "stop": ["a"], "data": [1]},
    {"messages": [{"role": "user", "content": TEXT * 40_000}], "model": "m"},
    {"messages": [{"role": "u", "content": [{"a": n} for n in range(90_000)]}, 1], "z": 1},
    {"input": [[n, n + 1] for n in range(60_000)], "model": "m"},
    {"model": "m", "input": list(range(120_000))},
    {"prompt": [TEXT] * 20_000, "model": "m"},
    {"object": "list", "data": [{"embedding": [0.5] * 999} for _ in range(300)], "usage": {}},
    {"x": {"messages": [1, 2]}, "y": '"messages":[', "messages": [{}] * 70_000},
    {"model": "m", "text": "x" * 2 * LARGE},
    {"messages": [], "x": [{}] * 70_000},
    {"messages": [{}] * 70_000, "x": {"messages": [5]}},
]


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("spaces", [False, True])
def test_it_is_the_same_value(value: dict[str, Any], spaces: bool) -> None:
    """Whatever stands before, behind and within the array; and it is written as it was."""
    option = orjson.OPT_INDENT_2 if spaces else None
    text = orjson.dumps(value, option=option)
    assert len(text) > LARGE
    assert read_large(text, orjson.loads) == (value, False)
    assert write_large(value, len(text)) == orjson.dumps(value)


@pytest.mark.parametrize("value", [VALUES[0], *VALUES[3:7]])
def test_no_piece_is_large(value: dict[str, Any]) -> None:
    """Nothing that is read at once is much longer than a piece, however long the array is."""
    longest = 0

    def read(text: bytes) -> Any:
        nonlocal longest
        longest = max(longest, len(text))
        return orjson.loads(text)

    text = orjson.dumps(value)
    read_large(text, read)
    assert longest < 150_000 < len(text)


@pytest.mark.parametrize(
    "broken",
    [
        b'{"messages":[%b,]}',
        b'{"messages":[%b}',
        b'{"messages":[%b]',
        b'{"messages":[%b,{]}',
        b'{"messages":[%b],"x":}',
        b'{"messages":[%b]}]}',
        b'[{"messages":[%b]]',
        b'{"messages" [%b]}',
    ],
)
def test_what_is_no_json(broken: bytes) -> None:
    """It is refused as it would be in one piece."""
    text = broken % b",".join([b'{"role":"user","content":"x"}'] * 30_000)
    with pytest.raises(ValueError):  # noqa: PT011 - whatever the parser says
        read_large(text, orjson.loads)


def test_of_a_name_that_comes_twice_the_last_counts() -> None:
    """As everywhere."""
    text = b'{"messages":[%b],"messages":[1]}' % b",".join([b"{}"] * 90_000)
    assert read_large(text, orjson.loads)[0] == {"messages": [1]}


@pytest.mark.parametrize("place", [10, 29_990])
def test_depth(place: int) -> None:
    """An item that is too deep is found wherever it stands."""
    items = [b'{"role":"user"}'] * 30_000
    items[place] = b"[" * 198 + b"]" * 198
    text = b'{"messages":[%b]}' % b",".join(items)
    assert not read_large(text, orjson.loads)[1]
    assert read_large(
        text.replace(b"[" * 198, b"[" * 199).replace(b"]" * 198, b"]" * 199), orjson.loads
    )[1]


def test_too_many_values_in_one_piece() -> None:
    """They would hold up everything else; of an array that comes in pieces there may be more."""
    numbers = list(range(120_000))
    text = orjson.dumps({"input": numbers})
    assert read_large(text, orjson.loads, 100_000)[0] == {"input": numbers}
    text = orjson.dumps({"x": numbers})
    assert read_large(text, orjson.loads)[0] == {"x": numbers}
    with pytest.raises(TooManyValues):
        read_large(text, orjson.loads, 100_000)


def test_what_counts() -> None:
    """Signs outside of texts."""
    text = b'{"a,{":["\\"{,",1,{"b":"[[["}],"c":","}'
    for signs, count in ((b"{", 2), (b",", 3), (b"{[", 3)):
        assert has_more(text, signs, count - 1)
        assert not has_more(text, signs, count)


def test_a_body_made_to_be_slow_takes_no_time() -> None:
    """Arrays that only seem to be the long one; texts without end between signs."""
    opened = b'{"x":[' + b'{"data":[' * 14_000 + b"1" + b"]}" * 14_000 + b"]}"
    texts = b'{"x":"' + b"{" * 60_000 + b'","y":[' + b'"a",' * 2_000_000 + b'"a"]}'
    began = time.thread_time()
    with pytest.raises(ValueError, match="depth"):
        read_large(opened, orjson.loads)
    assert has_more(texts, b"{[", 50_000)
    assert time.thread_time() - began < 2


def test_a_value_is_let_go() -> None:
    """Its arrays are empty afterwards, the rest stays."""
    value: dict[str, Any] = {"a": list(range(1000)), "b": "x", "c": []}
    let_go(value)
    assert value == {"a": [], "b": "x", "c": []}
