"""What a body means for the time of its call."""

import json
from typing import Any

import pytest

from gateway.core.errors import ClientError, ModelNotFound
from gateway.simulator.requests import Wanted, read_call


def _read(chat: bool = True, **members: Any) -> Wanted:
    said = {"messages": [{"role": "user", "content": "x" * 40}]} if chat else {"prompt": "x" * 40}
    body = json.dumps({"model": "m", **said, **members}).encode()
    return read_call(body, chat=chat, model="m", natural=30, context=100)


@pytest.mark.parametrize("chat", [True, False])
def test_four_bytes_are_a_token(chat: bool) -> None:
    """And an answer has the tokens it may have."""
    wanted = _read(chat, max_tokens=7)
    assert (wanted.prompt, wanted.output, wanted.reason) == (10, 7, "length")


@pytest.mark.parametrize(
    ("members", "output", "reason"),
    [
        ({}, 30, "stop"),
        ({"ignore_eos": True}, 90, "length"),
        ({"max_completion_tokens": 500}, 90, "length"),
        ({"max_tokens": 20, "stop": "keeps time"}, 4, "stop"),
        ({"max_tokens": 3, "stop": ["keeps time"]}, 3, "length"),
    ],
)
def test_an_answer_ends_where_it_must(members: dict[str, Any], output: int, reason: str) -> None:
    """By its limit, the context, a stop, or by itself."""
    wanted = _read(**members)
    assert (wanted.output, wanted.reason) == (output, reason)


def test_the_form_of_the_answer_is_read() -> None:
    """Priority, stream and usage."""
    wanted = _read(priority=3, stream=True, stream_options={"include_usage": True})
    assert (wanted.priority, wanted.stream, wanted.usage) == (3, True, True)


def test_prompts_of_all_kinds_are_measured() -> None:
    """Parts of a message, token numbers, and a list of one prompt."""
    parts = [{"type": "text", "text": "x" * 20}, {"type": "text", "text": "x" * 20}]
    assert _read(messages=[{"role": "user", "content": parts}]).prompt == 10
    assert _read(False, prompt=[1, 2, 3]).prompt == 3
    assert _read(False, prompt=["x" * 12]).prompt == 3


@pytest.mark.parametrize(
    "members", [{"n": 2}, {"max_tokens": 0}, {"priority": "high"}, {"messages": []}]
)
def test_what_cannot_be_served_is_refused(members: dict[str, Any]) -> None:
    """As the caller's fault."""
    with pytest.raises(ClientError):
        _read(**members)


def test_a_prompt_longer_than_the_context_is_refused() -> None:
    """With the code that clients know."""
    with pytest.raises(ClientError) as found:
        _read(messages=[{"role": "user", "content": "x" * 400}])
    assert found.value.code == "context_length_exceeded"


def test_other_models_are_not_here() -> None:
    """A wrong name is found out."""
    with pytest.raises(ModelNotFound):
        _read(model="other")
