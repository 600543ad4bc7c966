"""What model servers of one's own do differently; the pages in ``docs/providers/`` cite it."""

from typing import Any

import orjson
import pytest

from tests.support.providers import behind
from tests.support.scripts import Sse, answer, chat_chunk
from tests.support.upstream import ScriptedUpstream

PLAIN = {"id": "x", "object": "chat.completion", "choices": [{"message": {"content": "Hi"}}]}
WORDS = [chat_chunk("", role="assistant"), chat_chunk("Hi")]
END = chat_chunk(finish="stop")


def bare(code: int, message: str, kind: str) -> dict[str, Any]:
    """An error object by itself, as vLLM of old, SGLang and TensorRT-LLM write it."""
    return {"object": "error", "message": message, "type": kind, "param": None, "code": code}


def test_vllm_members_and_rank(upstream: ScriptedUpstream) -> None:
    """Its own members pass in both directions, and the lane's rank goes along."""
    choice = {"index": 0, "message": {"content": "Hi"}, "stop_reason": 7, "finish_reason": "stop"}
    upstream.enqueue(answer({**PLAIN, "choices": [choice], "prompt_logprobs": None}))
    with behind(upstream, "vllm") as provider:
        own = {"top_k": 5, "ignore_eos": True, "chat_template_kwargs": {"enable_thinking": False}}
        body = provider.chat(**own)[1]
    assert body["choices"] == [choice]
    sent = upstream.calls()[0].json
    assert {name: sent[name] for name in own} == own
    assert sent["priority"] == 0


@pytest.mark.parametrize("page", ["vllm", "sglang", "tensorrt-llm"])
def test_bare_errors(upstream: ScriptedUpstream, page: str) -> None:
    """They are errors wherever they stand: as an answer, first or later in a stream."""
    too_long = "This model's maximum context length is 2048 tokens. However, you requested 3000."
    dead = bare(500, "Engine died", "InternalServerError")
    upstream.enqueue(
        answer(bare(400, "temperature must be non-negative", "BadRequestError"), 400),
        answer(bare(400, too_long, "BadRequestError"), 400),
        Sse([bare(400, "bad grammar", "BadRequestError")]),
        Sse([*WORDS, dead], pause=0.05),
        Sse([*WORDS, {"error": dead}], pause=0.05),
    )
    with behind(upstream, page) as provider:
        status, error = provider.error()
        assert (status, error["type"], error["code"]) == (400, "BadRequestError", None)
        assert provider.error()[1]["code"] == "context_length_exceeded"
        assert provider.error(stream=True)[0] == 400
        for _ in range(2):
            *_, last = provider.stream()
            assert orjson.loads(last)["error"]["message"] == "Engine died"


def test_vllm_running_usage(upstream: ScriptedUpstream) -> None:
    """With ``continuous_usage_stats`` each chunk has a count: the last one holds."""
    counts = [{"prompt_tokens": 4, "completion_tokens": n, "total_tokens": 4 + n} for n in (0, 1)]
    chunks = [{**chunk, "usage": count} for chunk, count in zip(WORDS, counts, strict=True)]
    upstream.enqueue(Sse([*chunks, {**END, "usage": counts[1]}]))
    with behind(upstream, "vllm") as provider:
        provider.stream()
        assert provider.usage() == (4, 1, False)


def test_sglang_members(upstream: ScriptedUpstream) -> None:
    """An aborted answer says so in its own words; what ended it is told."""
    last = chat_chunk(finish="abort")
    last["choices"][0]["matched_stop"] = 2
    upstream.enqueue(Sse([*WORDS, last]))
    with behind(upstream, "sglang") as provider:
        events = provider.stream()
    choice = orjson.loads(events[-2])["choices"][0]
    assert (choice["finish_reason"], choice["matched_stop"]) == ("abort", 2)


def test_tgi_errors(upstream: ScriptedUpstream) -> None:
    """Text with a type beside it: the queue's, the caller's, and its own."""
    upstream.enqueue(
        answer({"error": "Model is overloaded", "error_type": "overloaded"}, 429),
        answer(PLAIN),
        answer(
            {
                "error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 64",
                "error_type": "validation",
            },
            422,
        ),
        answer({"error": "Request failed during generation", "error_type": "generation"}, 424),
    )
    with behind(upstream, "tgi", retry={"attempts": 2, "base": "10ms"}) as provider:
        assert provider.chat()[0] == 200
        status, error = provider.error()
        assert (status, error["type"]) == (422, "validation")
        assert error["code"] == "context_length_exceeded"
        status, error = provider.error()
        assert (status, error["message"]) == (502, "Request failed during generation")


def test_tgi_end_and_failure_of_a_stream(upstream: ScriptedUpstream) -> None:
    """A finish reason is an end without ``[DONE]``; an error before content keeps its status."""
    failed = {"error": {"message": "Input validation error", "http_status_code": 422}}
    upstream.enqueue(Sse([*WORDS, chat_chunk(finish="eos_token")], end="body"), Sse([failed]))
    with behind(upstream, "tgi") as provider:
        assert provider.stream()[-1] == "[DONE]"
        assert provider.error(stream=True)[0] == 422


def test_llama_cpp(upstream: ScriptedUpstream) -> None:
    """A model that loads is waited for; one that is too small has OpenAI's code; timings pass."""
    loading = {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}
    small = {
        "error": {
            "code": 400,
            "message": "the request exceeds the available context size, try increasing it",
            "type": "exceed_context_size_error",
            "n_prompt_tokens": 900,
            "n_ctx": 512,
        }
    }
    timings = {"prompt_n": 5, "predicted_n": 1, "predicted_per_second": 40.1}
    upstream.enqueue(
        answer(loading, 503),
        answer(PLAIN),
        answer(small, 400),
        Sse([*WORDS, {**END, "timings": timings}]),
        Sse([{"error": loading["error"]}]),
        Sse([{"error": loading["error"]}]),
    )
    with behind(upstream, "llama-cpp", retry={"attempts": 2, "base": "10ms"}) as provider:
        assert provider.chat()[0] == 200
        status, error = provider.error()
        assert (status, error["code"]) == (400, "context_length_exceeded")
        assert orjson.loads(provider.stream()[-2])["timings"] == timings
        assert provider.error(stream=True)[0] == 503


def test_ollama(upstream: ScriptedUpstream) -> None:
    """A name with a tag is asked for; one that was not pulled is told with its status."""
    message = 'model "llama3.2:3b" not found, try pulling it first'
    missing = {"message": message, "type": "not_found_error", "param": None, "code": None}
    upstream.enqueue(answer({"error": missing}, 404))
    with behind(upstream, "ollama") as provider:
        status, error = provider.error()
    assert (status, error["type"], error["message"]) == (404, "not_found_error", message)
    assert upstream.calls()[0].model == "llama3.2:3b"
