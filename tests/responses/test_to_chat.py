"""A request of one API as one of the other."""

from typing import Any

import pytest

from gateway.core.errors import InvalidRequest
from gateway.responses.to_chat import chat_request

TOOL = {"type": "function", "name": "f", "parameters": {}, "strict": True, "description": None}
ITEMS = [{"type": "message", "role": "user", "content": "hi"}]


def _chat(**members: Any) -> dict[str, Any]:
    chat = chat_request({"model": "m", "input": "hi", **members}, ITEMS)
    assert chat.pop("messages") == [{"role": "user", "content": "hi"}]
    assert chat.pop("model") == "m"
    return chat


def test_what_ends_here_does_not_go_on() -> None:
    """How a response is kept and told is not the target's business."""
    assert (
        _chat(
            store=True,
            background=False,
            metadata={"a": "b"},
            previous_response_id="resp_1",
            truncation="auto",
            include=["reasoning.encrypted_content"],
            stream=True,
            stream_options={"include_obfuscation": False},
            parallel_tool_calls=True,
            text={"format": {"type": "text"}},
        )
        == {}
    )


def test_what_is_called_otherwise() -> None:
    """Limits, effort, formats and log probabilities."""
    schema = {"type": "json_schema", "name": "n", "schema": {}, "strict": True}
    assert _chat(
        max_output_tokens=16,
        reasoning={"effort": "high", "summary": "auto"},
        text={"format": schema, "verbosity": "low"},
        top_logprobs=2,
        top_p=0.5,
        user="u",
        top_k=3,
    ) == {
        "max_tokens": 16,
        "reasoning_effort": "high",
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "n", "schema": {}, "strict": True},
        },
        "verbosity": "low",
        "logprobs": True,
        "top_logprobs": 2,
        "top_p": 0.5,
        "user": "u",
        "top_k": 3,
    }
    assert _chat(text={"format": {"type": "json_object"}})["response_format"] == {
        "type": "json_object"
    }
    assert _chat(include=["message.output_text.logprobs"]) == {"logprobs": True}


@pytest.mark.parametrize(
    ("choice", "expected", "tools"),
    [
        (None, None, ["f", "g"]),
        ("required", "required", ["f", "g"]),
        (
            {"type": "function", "name": "g"},
            {"type": "function", "function": {"name": "g"}},
            ["f", "g"],
        ),
        (
            {
                "type": "allowed_tools",
                "mode": "required",
                "tools": [{"type": "function", "name": "g"}],
            },
            "required",
            ["g"],
        ),
    ],
)
def test_tools(choice: Any, expected: Any, tools: list[str]) -> None:
    """Functions are wrapped, and so is the choice among them."""
    chat = _chat(tools=[TOOL, {**TOOL, "name": "g"}], tool_choice=choice)
    assert [tool["function"]["name"] for tool in chat["tools"]] == tools
    assert chat.get("tool_choice") == expected
    assert chat["tools"][0]["function"] == {"name": tools[0], "parameters": {}, "strict": True}


def test_what_a_target_would_have_to_run() -> None:
    """Hosted tools and a choice of one are refused by their place."""
    for members, param in (
        ({"tools": [{"type": "file_search"}]}, "tools[0].type"),
        ({"tools": [TOOL], "tool_choice": {"type": "mcp"}}, "tool_choice"),
    ):
        with pytest.raises(InvalidRequest) as caught:
            _chat(**members)
        assert caught.value.param == param
