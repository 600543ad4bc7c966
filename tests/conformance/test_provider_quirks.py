"""What providers do differently, as they publish it; the pages in ``docs/providers/`` cite it."""

from typing import Any

import orjson
import pytest

from tests.support.providers import behind
from tests.support.scripts import Sse, answer, chat_chunk, raw
from tests.support.upstream import ScriptedUpstream

PLAIN = {"id": "x", "object": "chat.completion", "choices": [{"message": {"content": "Hi"}}]}
WORDS = [chat_chunk("", role="assistant"), chat_chunk("Hi"), chat_chunk(" there")]
END = chat_chunk(finish="stop")


def text_of(events: list[str]) -> str:
    """The joined content of a stream's events."""
    chunks = [orjson.loads(event) for event in events if event != "[DONE]"]
    return "".join(c["choices"][0]["delta"].get("content") or "" for c in chunks if c["choices"])


def test_openrouter_heartbeats(upstream: ScriptedUpstream) -> None:
    """Its comments are no events: the text and the end are whole."""
    beat = b": OPENROUTER PROCESSING\n\n"
    upstream.enqueue(Sse([beat, beat, WORDS[0], beat, *WORDS[1:], beat, END]))
    with behind(upstream, "openrouter") as provider:
        events = provider.stream()
    assert text_of(events) == "Hi there"
    assert events[-1] == "[DONE]"


def openrouter_failure(code: int) -> dict[str, Any]:
    """An error in the middle of its stream, with status 200."""
    chunk = chat_chunk("", finish="error")
    return {**chunk, "error": {"code": code, "message": "Provider disconnected unexpectedly"}}


def test_openrouter_error_before_content(upstream: ScriptedUpstream) -> None:
    """It has a status of its own, although the provider had answered 200."""
    upstream.enqueue(Sse([b": OPENROUTER PROCESSING\n\n", openrouter_failure(429)]))
    with behind(upstream, "openrouter") as provider:
        assert provider.error(stream=True)[0] == 429


def test_openrouter_error_after_content(upstream: ScriptedUpstream) -> None:
    """One error event ends the stream, and nothing that looks like a proper end."""
    upstream.enqueue(Sse([*WORDS, openrouter_failure(502)], pause=0.05))
    with behind(upstream, "openrouter") as provider:
        *chunks, last = provider.stream()
    assert text_of(chunks) == "Hi there"
    assert orjson.loads(last)["error"]["message"] == "Provider disconnected unexpectedly"


def test_openrouter_error_in_a_plain_answer(upstream: ScriptedUpstream) -> None:
    """A body with an error and status 200 is no success."""
    upstream.enqueue(answer({"error": {"code": 503, "message": "No provider available"}}))
    with behind(upstream, "openrouter") as provider:
        assert provider.error()[0] == 503


def test_openrouter_moderation_and_credits(upstream: ScriptedUpstream) -> None:
    """A flagged prompt is the caller's, used-up credits are ours, a time-out is the target's."""
    metadata = {"reasons": ["violence"], "flagged_input": "…", "provider_name": "p"}
    flagged = {"error": {"code": 403, "message": "Input was flagged", "metadata": metadata}}
    empty = {"error": {"code": 402, "message": "Insufficient credits"}}
    late = {"error": {"code": 408, "message": "Request timed out"}}
    upstream.enqueue(answer(flagged, 403), answer(empty, 402), answer(late, 408))
    with behind(upstream, "openrouter") as provider:
        status, error = provider.error()
        assert (status, error["code"]) == (400, "content_filter")
        assert provider.error()[0] == 502
        assert provider.error()[0] == 502


def test_groq_usage(upstream: ScriptedUpstream) -> None:
    """``x_groq.usage`` of the last chunk is what the call cost."""
    usage = {"prompt_tokens": 18, "completion_tokens": 2, "total_tokens": 20, "queue_time": 0.01}
    first = {**WORDS[0], "x_groq": {"id": "req_1"}}
    last = {**END, "x_groq": {"id": "req_1", "usage": usage}}
    upstream.enqueue(Sse([first, *WORDS[1:], last]))
    with behind(upstream, "groq") as provider:
        events = provider.stream()
        assert orjson.loads(events[-2])["x_groq"]["usage"] == usage
        assert provider.usage() == (18, 2, False)


def test_groq_full_flex_tier(upstream: ScriptedUpstream) -> None:
    """498 is tried again; a caller is told 503, which clients know."""
    full = {"error": {"message": "Flex capacity exceeded", "type": "capacity_exceeded"}}
    upstream.enqueue(answer(full, 498), answer(PLAIN), answer(full, 498))
    with behind(upstream, "groq", retry={"attempts": 2, "base": "10ms"}) as provider:
        assert provider.chat()[0] == 200
    with behind(upstream, "groq") as provider:
        assert provider.error()[0] == 503


@pytest.mark.parametrize("wrapped", [True, False])
def test_mistral_validation(upstream: ScriptedUpstream, wrapped: bool) -> None:
    """A list of faults becomes one sentence."""
    detail = [
        {"type": "extra_forbidden", "loc": ["body", "foo"], "msg": "Extra inputs are not permitted"}
    ]
    body: dict[str, Any] = {"detail": detail}
    if wrapped:
        body = {"object": "error", "message": body, "type": "invalid_request_error", "param": None}
    upstream.enqueue(answer(body, 422))
    with behind(upstream, "mistral") as provider:
        status, error = provider.error(foo=1)
    assert status == 422
    assert error["message"] == "body.foo: Extra inputs are not permitted"


def test_mistral_usage(upstream: ScriptedUpstream) -> None:
    """It comes with the last choice, unasked."""
    usage = {"prompt_tokens": 4, "completion_tokens": 2, "total_tokens": 6}
    upstream.enqueue(Sse([*WORDS, {**chat_chunk("", finish="model_length"), "usage": usage}]))
    with behind(upstream, "mistral") as provider:
        events = provider.stream(stream_options={"include_usage": True})
        assert orjson.loads(events[-2])["choices"][0]["finish_reason"] == "model_length"
        assert provider.usage() == (4, 2, False)


def test_deepseek_keeps_calls_open(upstream: ScriptedUpstream) -> None:
    """Empty lines before a body and comments in a stream are neither content nor an error."""
    upstream.enqueue(
        raw(b"\n\n\n" + orjson.dumps(PLAIN), headers={"content-type": "application/json"}),
        Sse([b": keep-alive\n\n", *WORDS, b": keep-alive\n\n", END]),
    )
    with behind(upstream, "deepseek") as provider:
        assert provider.chat()[1] == PLAIN
        assert text_of(provider.stream()) == "Hi there"


def test_deepseek_usage_and_reasoning(upstream: ScriptedUpstream) -> None:
    """Cache hits are cached tokens; thoughts pass through."""
    usage = {
        "prompt_tokens": 9,
        "completion_tokens": 2,
        "prompt_cache_hit_tokens": 6,
        "prompt_cache_miss_tokens": 3,
    }
    thought = chat_chunk(reasoning_content="Hm.", content=None)
    last = chat_chunk(finish="insufficient_system_resource")
    upstream.enqueue(Sse([thought, *WORDS, {**last, "usage": usage}]))
    with behind(upstream, "deepseek") as provider:
        first, *_ = provider.stream()
        assert orjson.loads(first)["choices"][0]["delta"]["reasoning_content"] == "Hm."
        assert provider.gateway.settled(1)[0].outcome.usage.cached == 6


def google(code: int, status: str, message: str, *details: dict[str, Any]) -> list[dict[str, Any]]:
    """An error as Google writes it, in an array."""
    error = {"code": code, "message": message, "status": status, "details": list(details)}
    return [{"error": error}]


def test_gemini_errors(upstream: ScriptedUpstream) -> None:
    """Unwrapped; a bad key is ours to mend; the wait stands in the body."""
    reason = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
    retry = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34s"}
    long = "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."
    upstream.enqueue(
        answer(google(400, "INVALID_ARGUMENT", long), 400),
        answer(google(400, "INVALID_ARGUMENT", "Unknown name 'foo': Cannot find field."), 400),
        answer(google(400, "INVALID_ARGUMENT", "API key not valid.", reason), 400),
        answer(google(429, "RESOURCE_EXHAUSTED", "You exceeded your current quota.", retry), 429),
    )
    with behind(upstream, "gemini") as provider:
        assert provider.error()[1]["code"] == "context_length_exceeded"
        status, error = provider.error(foo=1)
        assert (status, error["message"]) == (400, "Unknown name 'foo': Cannot find field.")
        assert error["code"] is None
        status, error = provider.error()
        assert status == 502
        assert "not valid" not in error["message"]
        throttled = provider.gateway.chat(model=provider.model)
        assert (throttled.status_code, throttled.headers["retry-after"]) == (429, "34")


OVERLOADED = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}


def test_anthropic_overload(upstream: ScriptedUpstream) -> None:
    """529 is tried again and told as 503, also when it comes as an event."""
    event = b"event: error\ndata: " + orjson.dumps(OVERLOADED) + b"\n\n"
    upstream.enqueue(
        answer(OVERLOADED, 529),
        answer(PLAIN),
        answer(OVERLOADED, 529),
        Sse([event], end="body"),
        Sse([*WORDS, event], end="body", pause=0.05),
    )
    with behind(upstream, "anthropic", retry={"attempts": 2, "base": "10ms"}) as provider:
        assert provider.chat()[0] == 200
    with behind(upstream, "anthropic") as provider:
        for stream in (False, True):
            status, error = provider.error(stream=stream)
            assert (status, error["type"]) == (503, "overloaded_error")
        *chunks, last = provider.stream()
    assert text_of(chunks) == "Hi there"
    assert orjson.loads(last)["error"]["message"] == "Overloaded"


def test_anthropic_long_prompt(upstream: ScriptedUpstream) -> None:
    """Its words for it have the code that OpenAI's clients know."""
    message = "prompt is too long: 210000 tokens > 200000 maximum"
    body = {"error": {"type": "invalid_request_error", "message": message, "code": None}}
    upstream.enqueue(answer(body, 400))
    with behind(upstream, "anthropic") as provider:
        assert provider.error()[1]["code"] == "context_length_exceeded"


def test_together(upstream: ScriptedUpstream) -> None:
    """A finish reason of its own is no broken stream; 503 is tried again."""
    long = "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097"
    upstream.enqueue(
        Sse([*WORDS, chat_chunk(finish="eos")]),
        answer({"error": {"message": long, "type": "invalid_request_error"}}, 422),
        answer({"error": {"message": "overloaded", "type": "overloaded"}}, 503),
        answer(PLAIN, headers={"x-ratelimit-limit": "10", "x-ratelimit-reset": "1"}),
    )
    with behind(upstream, "together", retry={"attempts": 2, "base": "10ms"}) as provider:
        assert provider.stream()[-1] == "[DONE]"
        assert provider.error()[1]["code"] == "context_length_exceeded"
        assert provider.chat()[0] == 200


def test_openai_quota(upstream: ScriptedUpstream) -> None:
    """It is not a matter of speed: not tried again, and the client is told not to."""
    used_up = {"message": "You exceeded your quota.", "type": "insufficient_quota", "param": None}
    upstream.enqueue(answer({"error": {**used_up, "code": "insufficient_quota"}}, 429))
    with behind(upstream, "openai", retry={"attempts": 3, "base": "10ms"}) as provider:
        refused = provider.gateway.chat(model=provider.model)
    assert (refused.status_code, refused.headers["x-should-retry"]) == (429, "false")
    assert len(upstream.calls()) == 1


def test_openai_tier_and_obfuscation(upstream: ScriptedUpstream) -> None:
    """The tier of the lane is billed; padding passes as it is."""
    upstream.enqueue(Sse([{**WORDS[1], "obfuscation": "aB3"}, END]))
    with behind(upstream, "openai") as provider:
        events = provider.stream(service_tier="flex", stream_options={"include_obfuscation": True})
    sent = upstream.calls()[0].json
    assert sent["service_tier"] == "flex"
    assert sent["stream_options"] == {"include_obfuscation": True, "include_usage": True}
    assert orjson.loads(events[0])["obfuscation"] == "aB3"
