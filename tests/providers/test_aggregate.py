"""Streams put together again."""

from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest

from gateway.core.errors import StreamInterrupted, UpstreamFailed, UpstreamThrottled
from gateway.providers.aggregate import Aggregated, aggregate, error_in, has_content, no_answer
from gateway.providers.aggregate import plain_answer as checked
from gateway.providers.failures import TOO_DEEP, Scrubber
from tests.support.answers import Shape, plain_answer, stream_events
from tests.support.scripts import chat_chunk, usage_chunk


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

    async def events(data: bytes) -> AsyncIterator[bytes]:
        yield data

    deep = b'{"choices":' + b"[" * levels + b"]" * levels + b"}"
    with pytest.raises(UpstreamFailed) as told:
        await aggregate(events(deep), "up", Scrubber(()))
    with pytest.raises(UpstreamFailed) as caught:
        await aggregate(events(deep[:90]), "up", Scrubber(()))
    assert (told.value.code, caught.value.code) == (TOO_DEEP, "upstream_failed")
    assert no_answer(deep, "x", "up").code == TOO_DEEP
    assert no_answer(b"<html>", "x", "up").code == "upstream_failed"


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
    return checked(data, endpoint, "t", Scrubber(()))


def test_plain_answer() -> None:
    """An object with choices or data is one; blank lines before it do not matter."""
    assert whole(b'\n\n\n{"choices":[{}],"error":null}') == {"choices": [{}], "error": None}
    for odd in (b"[]", b"<html>", b"{}"):
        with pytest.raises(UpstreamFailed):
            whole(odd)


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

    async def stream() -> AsyncIterator[bytes]:
        yield orjson.dumps(chunk)
        yield b"[DONE]"

    with pytest.raises(UpstreamFailed):
        await aggregate(stream(), "t", Scrubber(()))


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


async def test_azure_begins_with_a_nameless_chunk() -> None:
    """What the first chunk leaves empty is taken from those after it."""
    early = {"id": "", "object": "", "created": 0, "model": "", "choices": []}

    async def stream() -> AsyncIterator[bytes]:
        yield orjson.dumps({**early, "prompt_filter_results": [{"prompt_index": 0}]})
        yield orjson.dumps(chat_chunk("a"))
        yield orjson.dumps(chat_chunk(finish="stop"))

    body = (await aggregate(stream(), "t", Scrubber(()))).body
    assert body["id"] == "chatcmpl-scripted"
    assert body["created"] > 0
    assert body["prompt_filter_results"] == [{"prompt_index": 0}]


async def test_usage_in_a_member_of_the_vendor() -> None:
    """Groq's usage beside the last choice is the answer's usage."""

    async def stream() -> AsyncIterator[bytes]:
        usage = {"prompt_tokens": 3, "completion_tokens": 1}
        yield orjson.dumps(chat_chunk("a"))
        yield orjson.dumps({**chat_chunk(finish="stop"), "x_groq": {"usage": usage}})

    answer = await aggregate(stream(), "t", Scrubber(()))
    assert answer.usage is not None
    assert (answer.usage.prompt, answer.usage.completion) == (3, 1)
