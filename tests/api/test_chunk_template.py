"""Chunks that are known without being parsed."""

import orjson
import pytest

from gateway.api.chunk_template import ChunkTemplate

EVENT = b"data: %b\n\n"


def chunk(text: str = "a", **choice: object) -> bytes:
    """A chunk with this text in its delta."""
    whole = {"index": 0, "delta": {"content": text}, "finish_reason": None, **choice}
    return orjson.dumps({"id": "c", "choices": [whole], "usage": None})


def taught(data: bytes) -> ChunkTemplate:
    """What has learned ``data``."""
    template = ChunkTemplate()
    value = orjson.loads(data)
    template.learn(data, value, value["choices"])
    return template


@pytest.mark.parametrize("text", ["b", "a longer one", " ", "grün", "漢字", "}]}"])
def test_another_text_is_known(text: str) -> None:
    """Its size is the text's in bytes."""
    assert taught(chunk()).sizes(EVENT % chunk(text)) == (len(text.encode()),)


@pytest.mark.parametrize(
    "data",
    [
        chunk(""),
        chunk('"'),
        chunk("\\"),
        chunk("\n"),
        chunk("b", finish_reason="stop"),
        chunk().replace(b'"a"', b'"\x01"'),
        chunk().replace(b'"a"', b'"\xff"'),
        chunk().replace(b'"a"', b'"a","content":"b"'),
        chunk().replace(b'"usage":null', b'"usage":{"prompt_tokens":1}'),
        chunk()[:-1],
        chunk().replace(b'"a"', b'"'),
        b"",
    ],
)
def test_all_else_must_be_looked_into(data: bytes) -> None:
    """Escapes, broken text, an end, usage, other members."""
    assert not taught(chunk()).sizes(EVENT % data)
    assert not taught(chunk()).sizes(EVENT % chunk() + EVENT % data)


@pytest.mark.parametrize(
    "data",
    [
        chunk("a", finish_reason="stop"),
        chunk("a\n"),
        chunk("a").replace(b'"usage":null', b'"usage":{"prompt_tokens":1}'),
        chunk("a").replace(b'"id":"c"', b'"content":"z"'),
        orjson.dumps({"choices": [{"delta": {"content": "a"}}, {"delta": {"content": "a"}}]}),
    ],
)
def test_what_is_not_learned(data: bytes) -> None:
    """A chunk that says more than its text is no pattern for others."""
    assert not taught(data).sizes(EVENT % data)


def test_nothing_learned_knows_nothing() -> None:
    """At the beginning every chunk is looked into."""
    assert not ChunkTemplate().sizes(EVENT % chunk())


def test_whole_events_only() -> None:
    """Several are known together; a part of one, a comment or another field is not."""
    template, event = taught(chunk()), EVENT % chunk("bc")
    assert template.sizes(event * 3) == [2, 2, 2]
    for piece in (event[:-1], event + b"data: ", b": x\n\n" + event, b"id: 1\n" + event, b""):
        assert not template.sizes(piece)
