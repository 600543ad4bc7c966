"""Bodies, read and checked."""

from typing import Any

import pytest

from gateway.core.errors import ClientError, InvalidRequest
from gateway.worker.requests import RequestReader, read_body
from gateway.worker.tokenizer import ByteVocabulary

READER = RequestReader(ByteVocabulary(), "m", 100)
USER = {"role": "user", "content": "hi"}


def test_prompts_come_in_four_forms() -> None:
    """A text, token ids, and arrays of either."""
    for prompt, count in (("ab", 1), ([97, 98], 1), (["a", "b"], 2), ([[97], [98]], 2)):
        generation = READER.completion({"model": "m", "prompt": prompt})
        assert len(generation.prompts) == count
        assert "".join(generation.texts) == "ab"


def test_text_parts_are_joined() -> None:
    """A message may be an array of text parts."""
    parts = [{"type": "text", "text": "h"}, {"type": "text", "text": "i"}]
    one = READER.chat({"model": "m", "messages": [{"role": "user", "content": parts}]})
    assert one.prompts == READER.chat({"model": "m", "messages": [USER]}).prompts


@pytest.mark.parametrize(
    ("body", "code", "param"),
    [
        ({"messages": [USER]}, "missing_required_parameter", "model"),
        ({"model": "x", "messages": [USER]}, "model_not_found", "model"),
        ({"model": "m"}, "missing_required_parameter", "messages"),
        ({"model": "m", "messages": []}, "invalid_type", "messages"),
        ({"model": "m", "messages": ["hi"]}, "invalid_type", "messages"),
        ({"model": "m", "messages": [{**USER, "content": 5}]}, "invalid_type", "messages"),
        ({"model": "m", "messages": [{**USER, "content": [{"type": "image_url"}]}]}, None,
         "messages"),
        ({"model": "m", "messages": [USER], "tools": [{}]}, None, "tools"),
        ({"model": "m", "messages": [USER], "response_format": {"type": "json_object"}}, None,
         "response_format"),
        ({"model": "m", "messages": [USER], "stream_options": {}}, None, "stream_options"),
        ({"model": "m", "messages": [USER], "stream": 1}, "invalid_type", "stream"),
        ({"model": "m", "messages": [USER], "n": 0}, "integer_below_min_value", "n"),
        ({"model": "m", "messages": [USER], "max_tokens": 99}, "context_length_exceeded",
         "messages"),
    ],
)  # fmt: skip
def test_a_wrong_body_is_refused_by_name(body: dict[str, Any], code: str, param: str) -> None:
    """Status, code and member are those of the contract."""
    with pytest.raises(ClientError) as caught:
        READER.chat(body)
    assert (caught.value.code, caught.value.param) == (code, param)


@pytest.mark.parametrize("prompt", ["", [], [[]], [1.5], 7])
def test_a_wrong_prompt_is_refused(prompt: object) -> None:
    """Empty or of another type."""
    with pytest.raises(InvalidRequest):
        READER.completion({"model": "m", "prompt": prompt})


@pytest.mark.parametrize("raw", [b"", b"{", b"[1]", b'"text"'])
def test_a_body_that_is_no_object_is_refused(raw: bytes) -> None:
    """Broken JSON and other values."""
    with pytest.raises(InvalidRequest):
        read_body(raw)


@pytest.mark.parametrize(
    ("members", "param"),
    [
        ({"prompt": [97, 5000]}, "prompt"),
        ({"prompt": [-1]}, "prompt"),
        ({"prompt": "a", "best_of": 3}, "best_of"),
        ({"prompt": "a", "echo": True, "logprobs": 1}, "logprobs"),
        ({"prompt": "a", "suffix": "b"}, "suffix"),
    ],
)
def test_what_the_worker_cannot_do_is_said(members: dict[str, Any], param: str) -> None:
    """An honest refusal, never a silent difference."""
    with pytest.raises(InvalidRequest) as refusal:
        READER.completion({"model": "m", **members})
    assert refusal.value.param == param
