"""What a target's answer is made of."""

from typing import Any

import orjson
import pytest

from gateway.core.errors import UpstreamFailed, UpstreamThrottled
from gateway.providers.answers import (
    choices_of,
    error_in,
    has_content,
    plain_answer,
    with_vectors_as_wanted,
)
from gateway.providers.scrubber import Scrubber
from tests.support.scripts import chat_chunk, usage_chunk


def test_choices_of_a_chunk() -> None:
    """None is no choice; a chunk whose choices are none of the API's is refused."""
    assert choices_of({}) == choices_of({"choices": None}) == []
    assert choices_of({"choices": [{"text": "a"}]}) == [{"text": "a"}]
    odd: Any
    for odd in (5, [], {"choices": {}}, {"choices": [1]}, {"choices": [{"delta": "x"}]}):
        with pytest.raises(ValueError, match="not a chunk"):
            choices_of(odd)


def test_what_counts_as_content() -> None:
    """A role or an empty delta is none."""
    assert not has_content(chat_chunk("", role="assistant"))
    assert not has_content(usage_chunk(1, 2))
    assert not has_content({})
    assert has_content(chat_chunk("a"))
    assert has_content(chat_chunk(refusal="no"))
    assert has_content({"choices": [{"text": "a"}]})


def whole(data: bytes, endpoint: str = "/v1/chat/completions") -> dict[str, Any]:
    """A plain answer of a target."""
    return plain_answer(data, endpoint, "t", Scrubber(()))


def test_plain_answer() -> None:
    """An object with choices or data is one; blank lines before it do not matter."""
    assert whole(b'\n\n\n{"choices":[{}],"error":null}') == {"choices": [{}], "error": None}
    for odd in (b"[]", b"<html>", b"{}"):
        with pytest.raises(UpstreamFailed):
            whole(odd)


def test_long_integers_stay() -> None:
    """What an answer is made into has the numbers that the target wrote."""
    assert whole(b'{"choices":[{"seed":%d}]}' % 2**70)["choices"] == [{"seed": 2**70}]


@pytest.mark.parametrize(
    "body",
    [{"error": {"message": "x", "code": 503}}, {"object": "error", "message": "x", "code": 503}],
)
def test_an_error_inside_a_success(body: dict[str, Any]) -> None:
    """It is classified as what it says, under ``error`` or as the object itself."""
    assert error_in(body)
    with pytest.raises(UpstreamThrottled):
        whole(orjson.dumps(body))


def test_an_answer_nested_too_deeply_is_no_answer() -> None:
    """It could not be written to a result line."""
    with pytest.raises(UpstreamFailed):
        whole(b'{"choices":[],"x":' + b"[" * 300 + b"]" * 300 + b"}")
    assert whole(b'{"choices":[],"x":' + b"[" * 100 + b"]" * 100 + b"}")


def test_what_an_endpoint_promises() -> None:
    """An answer has a list of objects where its endpoint promises one."""
    assert whole(b'{"choices":[{}]}')
    assert whole(b'{"data":[{}]}', "/v1/embeddings")
    wrong = [
        b'{"data":[{}]}',
        *(b'{"choices":%b}' % odd for odd in (b"null", b'"a"', b"[1]", b"{}")),
    ]
    for odd in wrong:
        with pytest.raises(UpstreamFailed):
            whole(odd, "/v1/completions")


def test_vectors_come_as_they_were_asked_for() -> None:
    """Numbers as base64, and nothing at all when they are so; what is no vector is a failure."""
    members, numbers = {"encoding_format": "base64"}, {"data": [{"embedding": [1.0]}]}
    made = with_vectors_as_wanted(members, numbers, "up")
    assert made == {"data": [{"embedding": "AACAPw=="}]}
    assert with_vectors_as_wanted({}, numbers, "up") is None
    with pytest.raises(UpstreamFailed, match="vectors are malformed"):
        with_vectors_as_wanted({}, {"data": [{"embedding": "?"}]}, "up")
