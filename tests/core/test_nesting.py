"""How deeply JSON may be nested."""

import orjson
import pytest

from gateway.core.nesting import MOST_LEVELS, is_deep, is_depth_fault, too_deep


def _nested(levels: int) -> bytes:
    return b'{"x":' * levels + b"1" + b"}" * levels


@pytest.mark.parametrize(("levels", "deep"), [(1, False), (200, False), (201, True), (1000, True)])
def test_the_limit_is_exact(levels: int, deep: bool) -> None:
    """200 levels are accepted; what is accepted can be written, with more around it."""
    text = _nested(levels)
    assert too_deep(text, orjson.loads(text)) is deep
    assert MOST_LEVELS == 200


def test_many_brackets_are_not_deep() -> None:
    """A wide text is no deep one."""
    text = orjson.dumps([{"role": "user"}] * 5000)
    assert not too_deep(text, orjson.loads(text))


@pytest.mark.parametrize(
    ("text", "deep"),
    [(_nested(10), False), (_nested(300), True), (_nested(2000), True), (b"{", False)],
)
def test_a_text_that_is_deep(text: bytes, deep: bool) -> None:
    """Whether it could be read; a text that is no JSON is not deep."""
    assert is_deep(text) is deep


def test_what_cannot_even_be_read() -> None:
    """Its depth is told from other faults."""
    for text, deep in ((_nested(2000), True), (b"{", False)):
        with pytest.raises(orjson.JSONDecodeError) as caught:
            orjson.loads(text)
        assert is_depth_fault(caught.value) is deep


@pytest.mark.parametrize("arrays", [0, 30, 36, 60, 150, 201])
def test_the_shortest_deep_texts(arrays: int) -> None:
    """However few bytes its levels take, a deep text is found."""
    objects = 201 - arrays
    text = b'{"":' * objects + b"[" * arrays + b"]" * arrays + b"}" * objects
    text = text.replace(b":}", b":1}")
    assert too_deep(text, orjson.loads(text))
