"""Chat completions: what goes through unchanged, and what does not."""

from typing import Any

import pytest

from tests.support.interactive import wire
from tests.support.scripts import Sse, answer, chat_chunk, usage_chunk
from tests.support.upstream import ScriptedUpstream

CHAT = "/v1/chat/completions"
USER = [{"role": "user", "content": "hi"}]
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
LOGPROBS = {
    "content": [{"token": "a", "logprob": -0.5, "bytes": [97], "top_logprobs": []}],
    "refusal": None,
}


def _answer(message: dict[str, Any], finish: str, **choice: Any) -> dict[str, Any]:
    content = {"role": "assistant", "content": None, "refusal": None, **message}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    only = {"index": 0, "message": content, "finish_reason": finish, "logprobs": None, **choice}
    head = {"id": "x", "object": "chat.completion", "created": 1_760_000_000, "model": "m"}
    return {**head, "choices": [only], "usage": usage, "kv_transfer_params": None}


def test_documented_and_unknown_members_pass(upstream: ScriptedUpstream) -> None:
    """Everything but what steers the gateway and its targets arrives as it was sent."""
    members: dict[str, Any] = {
        "messages": USER,
        "temperature": 0.2,
        "top_p": 0.9,
        "seed": 7,
        "stop": ["a"],
        "logit_bias": {"5": 1},
        "tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}],
        "tool_choice": "auto",
        "parallel_tool_calls": False,
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {}}},
        "reasoning_effort": "low",
        "user": "u",
        "metadata": {"a": "b"},
        "functions": [{"name": "g"}],
        "top_k": 5,
        "min_p": 0.1,
        "chat_template_kwargs": {"enable_thinking": False},
        "ignore_eos": True,
        "guided_json": {"a": [1, None, {"b": "ü"}]},
        "max_completion_tokens": None,
    }
    steering = {
        "api_base": "http://evil",
        "base_url": "http://evil",
        "api_key": "sk-evil",
        "custom_llm_provider": "evil",
        "priority": -1,
    }
    with wire(upstream) as there:
        there.ok(CHAT, "chat_completion", **members, **steering)
        assert there.sent() == {"model": "m", **members}


def test_answers_pass(upstream: ScriptedUpstream) -> None:
    """Tool calls, structured output, log probabilities and members of vendors come back."""
    for body in (
        _answer({"tool_calls": [CALL]}, "tool_calls"),
        _answer({"content": '{"a":1}'}, "stop", logprobs=LOGPROBS),
        _answer({"refusal": "no"}, "stop"),
        _answer({"content": "a", "reasoning_content": "hm"}, "length"),
        _answer({"content": ""}, "content_filter", stop_reason="x"),
    ):
        upstream.enqueue(answer(body))
        with wire(upstream) as there:
            assert there.ok(CHAT, "chat_completion", messages=USER) == body


def test_deltas_pass(upstream: ScriptedUpstream) -> None:
    """Tool-call deltas and log probabilities of a stream are the target's, byte for byte."""
    first = {"index": 0, **CALL, "function": {"name": "f", "arguments": ""}}
    chunks = [
        chat_chunk("", role="assistant"),
        chat_chunk(tool_calls=[first]),
        chat_chunk(tool_calls=[{"index": 0, "function": {"arguments": '{"a"'}}]),
        chat_chunk(tool_calls=[{"index": 0, "function": {"arguments": ":1}"}}]),
        chat_chunk(finish="tool_calls"),
    ]
    chunks[2]["choices"][0]["logprobs"] = LOGPROBS
    upstream.enqueue(Sse([*chunks, usage_chunk(3, 4)]))
    with wire(upstream) as there:
        assert there.events(CHAT, "chat_chunk", messages=USER) == chunks
        usage = there.gateway.settled(1)[0].outcome.usage
    assert (usage.prompt, usage.completion) == (3, 4)


@pytest.mark.parametrize("asked", [False, True])
def test_usage_of_a_stream(upstream: ScriptedUpstream, asked: bool) -> None:
    """The client sees it only if it asked; the target is asked, and the meter has it, always."""
    options = {"stream_options": {"include_usage": True}} if asked else {}
    with wire(upstream) as there:
        events = there.events(CHAT, "chat_chunk", messages=USER, max_tokens=3, **options)
        assert there.sent()["stream_options"] == {"include_usage": True}
        assert there.gateway.settled(1)[0].outcome.usage.completion == 3
    told = [event for event in events if not event["choices"]]
    assert [event["usage"]["completion_tokens"] for event in told] == ([3] if asked else [])


def test_several_choices(upstream: ScriptedUpstream) -> None:
    """``n``: each choice has its role, its text and its end; usage counts all of them."""
    with wire(upstream) as there:
        whole = there.ok(CHAT, "chat_completion", messages=USER, n=3, max_tokens=2)
        events = there.events(CHAT, "chat_chunk", messages=USER, n=3, max_tokens=2)
    assert [choice["index"] for choice in whole["choices"]] == [0, 1, 2]
    assert whole["usage"]["completion_tokens"] == 6
    ends = [c["index"] for e in events for c in e["choices"] if c["finish_reason"]]
    assert sorted(ends) == [0, 1, 2]
