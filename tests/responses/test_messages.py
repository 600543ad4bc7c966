"""Items of a conversation as chat messages."""

from typing import Any

import pytest

from gateway.core.errors import InvalidRequest
from gateway.responses.messages import chat_messages


def _user(content: Any) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": content}


def test_texts_and_roles() -> None:
    """Instructions come first; ``developer`` is what every server calls ``system``."""
    items = [
        {"type": "message", "role": "developer", "content": "rules"},
        _user([{"type": "input_text", "text": "hi"}]),
        {
            "type": "message",
            "role": "assistant",
            "content": [
                {"type": "output_text", "text": "a", "annotations": []},
                {"type": "output_text", "text": "b", "annotations": []},
            ],
        },
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "refusal", "refusal": "no"}],
        },
    ]
    assert chat_messages("first", items) == [
        {"role": "system", "content": "first"},
        {"role": "system", "content": "rules"},
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "ab"},
        {"role": "assistant", "content": None, "refusal": "no"},
    ]


def test_parts() -> None:
    """Pictures, files and sound keep their place among the texts."""
    parts = [
        {"type": "input_text", "text": "what?"},
        {"type": "input_image", "image_url": "https://x/y.png", "detail": "low"},
        {"type": "input_file", "file_data": "data:", "filename": "a.pdf"},
        {"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}},
    ]
    assert chat_messages(None, [_user(parts)])[0]["content"] == [
        {"type": "text", "text": "what?"},
        {"type": "image_url", "image_url": {"url": "https://x/y.png", "detail": "low"}},
        {"type": "file", "file": {"file_data": "data:", "filename": "a.pdf"}},
        {"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}},
    ]


def test_calls_belong_to_the_turn_before() -> None:
    """Calls join the assistant's message; thoughts go along only with calls."""
    call = {"type": "function_call", "name": "f", "arguments": "{}"}
    thought = {"type": "reasoning", "content": [{"type": "reasoning_text", "text": "hm"}]}
    messages = chat_messages(
        None,
        [
            thought,
            {"type": "message", "role": "assistant", "content": "let me see"},
            thought,
            {**call, "call_id": "1"},
            {**call, "call_id": "2"},
            {"type": "function_call_output", "call_id": "1", "output": "x"},
            {
                "type": "function_call_output",
                "call_id": "2",
                "output": [{"type": "input_text", "text": "y"}],
            },
        ],
    )
    assert [message["role"] for message in messages] == ["assistant", "tool", "tool"]
    assert messages[0]["content"] == "let me see"
    assert messages[0]["reasoning_content"] == "hm"
    assert [call["id"] for call in messages[0]["tool_calls"]] == ["1", "2"]
    assert [message["content"] for message in messages[1:]] == ["x", "y"]


@pytest.mark.parametrize(
    ("item", "param"),
    [
        ({"type": "web_search_call"}, "input[0].type"),
        (_user([{"type": "input_image", "file_id": "file-1"}]), "input[0].content[0]"),
        (_user([{"type": "input_text"}]), "input[0].content[0].text"),
        (_user(["text"]), "input[0].content"),
        (
            {"type": "function_call_output", "call_id": "1", "output": [{"type": "x"}]},
            "input[0].output[0]",
        ),
        ({"type": "reasoning", "content": "x"}, "input[0].content"),
        ({"type": "function_call", "name": "f", "arguments": "{}"}, "input[0].call_id"),
        ({"type": "function_call_output", "call_id": "1", "output": 3}, "input[0].output"),
        (
            {"type": "message", "role": "assistant", "content": [{"type": "input_image"}]},
            "input[0].content",
        ),
    ],
)
def test_what_chat_has_no_words_for(item: dict[str, Any], param: str) -> None:
    """The error names the place."""
    with pytest.raises(InvalidRequest) as caught:
        chat_messages(None, [item])
    assert caught.value.param == param
