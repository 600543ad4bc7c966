"""Streams put together again."""

from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest

from gateway.core.errors import StreamInterrupted, UpstreamFailed, UpstreamThrottled
from gateway.providers.aggregate import Aggregated, aggregate
from gateway.providers.broken_answers import TOO_DEEP
from gateway.providers.scrubber import Scrubber
from tests.support.answers import Shape, plain_answer, stream_events
from tests.support.scripts import chat_chunk


async def together(*chunks: Any, done: bool = True) -> Aggregated:
    """The answer that these chunks make."""

    async def source() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk if isinstance(chunk, bytes) else orjson.dumps(chunk)
        if done:
            yield b"[DONE]"

    return await aggregate(source(), "t", Scrubber(()))


@pytest.mark.parametrize("levels", [300, 2000])
async def test_an_event_nested_too_deeply_is_told_apart(levels: int) -> None:
    """Other than a broken one, it is what the same question gets again."""
    deep = b'{"choices":' + b"[" * levels + b"]" * levels + b"}"
    with pytest.raises(UpstreamFailed) as told:
        await together(deep)
    with pytest.raises(UpstreamFailed) as caught:
        await together(deep[:90])
    assert (told.value.code, caught.value.code) == (TOO_DEEP, "upstream_failed")


async def test_an_event_of_too_many_parts_is_a_failure() -> None:
    """It is not read at all."""
    with pytest.raises(UpstreamFailed, match="objects and arrays"):
        await together(b'{"choices":[],"x":[' + b",".join([b"[]"] * 100_001) + b"]}")


@pytest.mark.parametrize("chat", [True, False])
async def test_equals_the_plain_answer(*, chat: bool) -> None:
    """What was streamed and what a plain call gets are the same object."""
    body: dict[str, Any] = {"model": "m", "n": 3, "max_tokens": 5}
    body |= {"messages": [{"role": "user", "content": "x"}]} if chat else {"prompt": ["a", "b"]}
    streamed = {**body, "stream_options": {"include_usage": True}}
    shape = Shape(chat=chat)
    got = await together(*stream_events(shape, streamed))
    plain = plain_answer(shape, streamed)
    assert got.body == plain
    assert got.usage is not None
    assert got.usage.completion == plain["usage"]["completion_tokens"]


async def test_tool_calls_and_reasoning() -> None:
    """Pieces of arguments are joined by index; reasoning is kept beside the content."""

    def call(index: int, arguments: str, **first: Any) -> dict[str, Any]:
        function = {"arguments": arguments, **({"name": f"f{index}"} if first else {})}
        return chat_chunk(tool_calls=[{"index": index, **first, "function": function}])

    got = await together(
        chat_chunk(role="assistant", reasoning_content="let "),
        chat_chunk(reasoning_content="me"),
        call(0, '{"a', id="c0", type="function"),
        call(1, "{", id="c1", type="function"),
        call(0, '":1}'),
        call(1, "}"),
        chat_chunk(finish="tool_calls"),
    )
    message = got.body["choices"][0]["message"]
    assert message["content"] is None
    assert message["reasoning_content"] == "let me"
    assert message["tool_calls"] == [
        {"id": "c0", "type": "function", "function": {"name": "f0", "arguments": '{"a":1}'}},
        {"id": "c1", "type": "function", "function": {"name": "f1", "arguments": "{}"}},
    ]
    assert got.usage is None


async def test_logprobs_and_extras() -> None:
    """Logprobs are strung together, other members of a choice kept."""
    first, second = chat_chunk("a"), chat_chunk("b", finish="stop")
    first["choices"][0]["logprobs"] = {"content": [{"token": "a"}], "refusal": None}
    second["choices"][0]["logprobs"] = {"content": [{"token": "b"}], "refusal": None}
    second["choices"][0]["stop_reason"] = "x"
    choice = (await together(first, second)).body["choices"][0]
    assert choice["logprobs"] == {"content": [{"token": "a"}, {"token": "b"}], "refusal": None}
    assert choice["stop_reason"] == "x"


async def test_a_cut_stream_is_no_answer() -> None:
    """Without [DONE] and a finish reason for each choice it is interrupted."""
    with pytest.raises(StreamInterrupted):
        await together(chat_chunk("a"), done=False)
    with pytest.raises(StreamInterrupted):
        await together()
    whole = await together(chat_chunk("a"), chat_chunk(finish="stop"), done=False)
    assert whole.body["choices"][0]["message"]["content"] == "a"


async def test_errors_inside_the_stream() -> None:
    """An error event is classified; what is no JSON object is the target's failure."""
    with pytest.raises(UpstreamThrottled):
        await together({"error": {"message": "x", "code": "rate_limit_exceeded"}})
    with pytest.raises(UpstreamFailed):
        await together(b"[1]")


@pytest.mark.parametrize(
    "chunk",
    [
        {"choices": "abc"},
        {"choices": ["abc"]},
        {"choices": [{"delta": 5}]},
        {"choices": [{"index": "x", "delta": {}}]},
        {"object": "text_completion", "choices": [{"text": 5}]},
        {"choices": [{"delta": {"tool_calls": [5]}}]},
        {"choices": [{"delta": {"a": "x"}}, {"delta": {"a": {"b": 1}}}]},
    ],
)
async def test_a_chunk_that_is_none_is_the_targets_failure(chunk: dict[str, Any]) -> None:
    """Members of wrong types never get further than here."""
    with pytest.raises(UpstreamFailed):
        await together(chunk)


async def test_azure_begins_with_a_nameless_chunk() -> None:
    """What the first chunk leaves empty is taken from those after it."""
    early = {"id": "", "object": "", "created": 0, "model": "", "choices": []}
    first = {**early, "prompt_filter_results": [{"prompt_index": 0}]}
    body = (await together(first, chat_chunk("a"), chat_chunk(finish="stop"))).body
    assert body["id"] == "chatcmpl-scripted"
    assert body["created"] > 0
    assert body["prompt_filter_results"] == [{"prompt_index": 0}]


async def test_usage_in_a_member_of_the_vendor() -> None:
    """Groq's usage beside the last choice is the answer's usage."""
    usage = {"prompt_tokens": 3, "completion_tokens": 1}
    last = {**chat_chunk(finish="stop"), "x_groq": {"usage": usage}}
    answer = await together(chat_chunk("a"), last)
    assert answer.usage is not None
    assert (answer.usage.prompt, answer.usage.completion) == (3, 1)


async def test_a_character_in_two_events() -> None:
    """Its halves stand side by side in the answer."""
    chunk = orjson.dumps(chat_chunk("HALF"))
    halves = [chunk.replace(b"HALF", half) for half in (rb"\ud83d", rb"\ude42")]
    got = await together(*halves, chat_chunk(finish="stop"))
    text = got.body["choices"][0]["message"]["content"]
    assert text == "\ud83d\ude42"
