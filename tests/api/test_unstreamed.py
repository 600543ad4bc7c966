"""Plain answers of targets to streamed calls, over real HTTP."""

import threading
from typing import Any

import orjson
import pytest

from gateway.api import unstreamed
from gateway.metering.record import CallStatus
from gateway.providers.answers import plain_answer
from tests.api.test_streaming import sdk
from tests.support.gateway import MODEL, running_gateway
from tests.support.responses import ResponsesPlane, native_response, said
from tests.support.scripts import Sse, answer, chat_chunk, raw
from tests.support.upstream import ScriptedUpstream

LOADING = {"message": "model is loading", "type": "server_error", "code": "overloaded"}
TOOL = {"id": "t1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
AS_EVENTS = {"content-type": "text/event-stream"}


def test_a_large_answer_is_read_beside_the_loop(
    upstream: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a small one on it, for a thread costs more."""
    threads = []

    def noted(*call: Any) -> Any:
        threads.append(threading.current_thread().name.startswith("asyncio_"))
        return plain_answer(*call)

    monkeypatch.setattr(unstreamed, "plain_answer", noted)
    for size in (100, 200_000):
        choice = {"message": {"content": "x" * size}, "finish_reason": "stop"}
        upstream.enqueue(answer({"choices": [choice]}))
    with running_gateway({"up": {"base_url": upstream.url}}) as gateway:
        for size in (100, 200_000):
            assert "x" * size in gateway.chat(stream=True).text
    assert threads == [False, True]


@pytest.mark.parametrize(
    ("script", "status", "text"),
    [
        (answer({"error": LOADING}), 503, "model is loading"),
        (answer([{"error": LOADING}], headers=AS_EVENTS), 502, "not a JSON object"),
        (raw(b"\n\n" + orjson.dumps({"error": LOADING})), 503, "model is loading"),
        (raw(b"\xef\xbb\xbf" + orjson.dumps({"error": LOADING})), 503, "model is loading"),
        (answer({"choices": "none"}), 502, "no choices"),
        (answer({"choices": [{"message": 5}]}), 502, "malformed"),
        (raw(b'{"id": "half'), 502, "not a JSON object"),
    ],
)
def test_an_error_is_that_of_a_plain_call(
    upstream: ScriptedUpstream, script: Any, status: int, text: str
) -> None:
    """Its status and its words reach the caller, who is charged nothing."""
    upstream.on("hello", script)
    target = {"base_url": upstream.url, "retry": {"attempts": 1}}
    with running_gateway({"up": target}) as gateway:
        got = gateway.chat(stream=True)
        assert got.status_code == status
        assert text in got.json()["error"]["message"]
        assert ("retry-after" in got.headers) == (status == 503)
        outcome = gateway.settled(1)[0].outcome
        assert (outcome.status, outcome.usage.total) == (CallStatus.FAILED, 0)


@pytest.mark.parametrize("asked", [False, True])
def test_a_whole_answer_becomes_a_stream(upstream: ScriptedUpstream, asked: bool) -> None:
    """Role and content, the tool calls, the end, the usage if asked for, and ``[DONE]``."""
    upstream.enqueue(answer(said("hi there", refusal=None, tool_calls=[TOOL])))
    options: dict[str, Any] = {"stream_options": {"include_usage": True}} if asked else {}
    with running_gateway({"up": {"base_url": upstream.url}}) as gateway:
        got = gateway.chat(stream=True, **options)
        assert got.headers["content-type"].startswith("text/event-stream")
        events = got.text.split("\n\n")
        assert events[-2:] == ["data: [DONE]", ""]
        chunks = [orjson.loads(event[6:]) for event in events[:-2]]
        assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}
        first, last = (chunk["choices"][0] for chunk in chunks[:2])
        tool = {**TOOL, "index": 0}
        assert first["delta"] == {"role": "assistant", "content": "hi there", "tool_calls": [tool]}
        assert (first["finish_reason"], last["finish_reason"]) == (None, "stop")
        assert [chunk["usage"]["total_tokens"] for chunk in chunks[2:]] == [7] * asked
        outcome = gateway.settled(1)[0].outcome
        assert (outcome.usage.prompt, outcome.usage.completion) == (5, 2)
        assert (outcome.status, outcome.usage.estimated) == (CallStatus.OK, False)


def test_half_a_character_becomes_a_stream_too(upstream: ScriptedUpstream) -> None:
    """And so do integers beyond 64 bits: what a target says goes out as it came."""
    whole = orjson.dumps(said("cut #", seed=1)).replace(b"#", b"\\ud83d")
    upstream.enqueue(raw(whole.replace(b'"seed":1', b'"seed":%d' % 2**70)))
    with running_gateway({"up": {"base_url": upstream.url}}) as gateway:
        got = gateway.chat(stream=True)
        assert (got.status_code, "cut \\ud83d" in got.text) == (200, True)
        assert f'"seed":{2**70}' in got.text


def test_the_official_client_reads_it(upstream: ScriptedUpstream) -> None:
    """Chat and completions, each choice by its number."""
    upstream.enqueue(answer(said("hi there")))
    choices = [{"text": text, "finish_reason": "stop"} for text in "ab"]
    upstream.enqueue(answer({"id": "c", "object": "text_completion", "choices": choices}))
    with running_gateway({"up": {"base_url": upstream.url}}) as gateway:
        client = sdk(gateway)
        messages: Any = [{"role": "user", "content": "hello"}]
        chat = client.chat.completions.create(model=MODEL, messages=messages, stream=True)
        assert "".join(c.choices[0].delta.content or "" for c in chat) == "hi there"
        texts = client.completions.create(model=MODEL, prompt="x", stream=True, n=2)
        assert [(c.choices[0].index, c.choices[0].text) for c in texts] == [(0, "a"), (1, "b")]


@pytest.mark.parametrize("model", ["m", "n"])
def test_a_response_too(responses: ResponsesPlane, model: str) -> None:
    """A target with the Responses API or without it: the events of a whole response."""
    if model == "n":
        responses.native.enqueue(answer(native_response("hi there")))
    else:
        responses.upstream.on("plainly", answer(said("hi there")), times=1)
    got = responses.text(model=model, input="plainly", stream=True)
    assert got.count("event: response.completed") == 1
    assert "response.output_text.delta" in got


def test_a_refusal_in_the_stream_is_not_charged(upstream: ScriptedUpstream) -> None:
    """As one by status; what failed after content is charged for what came."""
    refused = {"error": {"message": "quota", "code": "insufficient_quota"}}
    scripts: list[Any] = [
        Sse([refused]),
        Sse([chat_chunk(role="assistant"), refused]),
        raw(b"<html>hello</html>", headers={"content-type": "text/html"}),
        raw(b"", 204),
        Sse([chat_chunk("some words"), refused]),
    ]
    target = {"base_url": upstream.url, "retry": {"attempts": 1}, "breaker": {"failures": 99}}
    with running_gateway({"up": target}) as gateway:
        for number, script in enumerate(scripts, 1):
            upstream.enqueue(script)
            gateway.chat(stream=True)
            outcome = gateway.settled(number)[-1].outcome
            assert outcome.status is CallStatus.FAILED
            assert (outcome.usage.total > 0) == (number == len(scripts)), number
