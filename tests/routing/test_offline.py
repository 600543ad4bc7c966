"""One attempt for one batch row."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import orjson
import pytest

from gateway.core.errors import InvalidRequest, ModelNotFound, UpstreamFailed, UpstreamThrottled
from gateway.core.rates import RateLimit, RateLimits
from gateway.core.usage import ReportedUsage
from gateway.policy.model import Policy
from gateway.providers.broken_answers import TOO_DEEP
from gateway.providers.registry import Registry
from gateway.routing.offline import RowCaller
from gateway.routing.router import Router
from gateway.schemas.vectors import packed
from tests.support.contract import checked
from tests.support.limiter import Limiter
from tests.support.responses import native_response
from tests.support.scripts import answer, error, never, raw
from tests.support.upstream import ScriptedUpstream


@dataclass
class Place:
    """Where a row goes; counts what it hears."""

    target: str = "one"
    key: int = 0
    heads: list[RateLimits | None] = field(default_factory=list)
    firsts: int = 0
    tokens: int = 0

    def head(self, rates: RateLimits | None) -> None:
        self.heads.append(rates)

    def first_token(self) -> None:
        self.firsts += 1

    def token(self) -> None:
        self.tokens += 1


ONE, TWO = Place(), Place("two")
CHAT = orjson.dumps({"model": "m", "messages": [{"role": "user", "content": "a b c"}]})


@pytest.fixture
async def caller(
    upstream: ScriptedUpstream, upstream2: ScriptedUpstream
) -> AsyncIterator[RowCaller]:
    """Over UP and UP2; UP serves ``m`` as ``their-m``."""
    policy = Policy.model_validate(
        {
            "targets": {
                "one": {"base_url": upstream.url, "models": {"m": "their-m"}, "priority": True},
                "two": {"base_url": upstream2.url, "models": ["m"]},
            }
        }
    )
    registry = Registry.from_policy(policy)
    yield RowCaller(Router(policy), registry)
    await registry.aclose()


async def test_streams_and_puts_together(caller: RowCaller, upstream: ScriptedUpstream) -> None:
    """The target is streamed with the batch rank; the row gets a plain answer and its usage."""
    place = Place()
    upstream.enqueue(Limiter(60, 10.0))
    got = await caller.call("m", "/v1/chat/completions", CHAT, "r1", place)
    sent = upstream.calls()[0].json
    assert (sent["stream"], sent["priority"], sent["model"]) == (True, 100, "their-m")
    assert (got.status, got.target, got.served_model) == (200, "one", "their-m")
    assert got.body["object"] == "chat.completion"
    assert got.body["choices"][0]["message"]["content"].endswith("w15")
    assert got.usage is not None
    assert (got.usage.prompt, got.usage.completion) == (3, 16)
    assert (place.firsts, place.tokens) == (1, 15)
    assert place.heads == [RateLimits(RateLimit(60, 59, 10.0))]
    await caller.call("m", "/v1/chat/completions", CHAT, "r2", ONE)
    assert upstream.connections == 1


async def test_completions_and_embeddings(caller: RowCaller) -> None:
    """Completions are streamed too; embeddings are plain."""
    body = orjson.dumps({"model": "m", "prompt": ["a", "b"]})
    done = await caller.call("m", "/v1/completions", body, "r", ONE)
    assert [choice["index"] for choice in done.body["choices"]] == [0, 1]
    vectors = await caller.call(
        "m", "/v1/embeddings", orjson.dumps({"model": "m", "input": "a b"}), "r", ONE
    )
    assert vectors.body["object"] == "list"
    assert vectors.usage is not None
    assert vectors.usage.prompt == 2


async def test_plain_answer_to_a_stream(caller: RowCaller, upstream: ScriptedUpstream) -> None:
    """A target that does not stream is taken at its word; one that talks HTML is not."""
    upstream.enqueue(answer({"choices": [], "usage": {"prompt_tokens": 4}}))
    got = await caller.call("m", "/v1/chat/completions", CHAT, "r", ONE)
    assert got.usage is not None
    assert got.usage.prompt == 4
    upstream.enqueue(raw(b"<html>"))
    with pytest.raises(UpstreamFailed):
        await caller.call("m", "/v1/chat/completions", CHAT, "r", ONE)


async def test_an_answer_nested_too_deeply(caller: RowCaller, upstream: ScriptedUpstream) -> None:
    """It is known for what it is: no fault that passes."""
    body = b'{"choices":' + b"[" * 300 + b"]" * 300 + b"}"
    upstream.enqueue(raw(body))
    with pytest.raises(UpstreamFailed) as caught:
        await caller.call("m", "/v1/chat/completions", CHAT, "r", ONE)
    assert caught.value.code == TOO_DEEP


async def test_one_attempt_at_the_named_target(
    caller: RowCaller, upstream: ScriptedUpstream, upstream2: ScriptedUpstream
) -> None:
    """Nothing is tried again or elsewhere: that is the dispatcher's business."""
    limits = {"retry-after": "7", "x-ratelimit-remaining-tokens": "0"}
    upstream2.on("m", error(429, headers=limits))
    with pytest.raises(UpstreamThrottled) as caught:
        await caller.call("m", "/v1/chat/completions", CHAT, "r", TWO)
    assert caught.value.retry_after == 7
    assert caught.value.rates == RateLimits(tokens=RateLimit(remaining=0))
    assert (len(upstream.calls()), len(upstream2.calls())) == (0, 1)
    upstream2.clear()
    upstream2.on("m", raw(b"[]"))
    with pytest.raises(UpstreamFailed):
        await caller.call(
            "m", "/v1/embeddings", orjson.dumps({"model": "m", "input": "x"}), "r", TWO
        )


async def test_unknown_model(caller: RowCaller) -> None:
    """A model that nobody, or not this target, serves is no upstream's fault."""
    with pytest.raises(ModelNotFound):
        await caller.call("nope", "/v1/chat/completions", CHAT, "r", ONE)
    with pytest.raises(ModelNotFound):
        await caller.call("m", "/v1/chat/completions", CHAT, "r", Place("three"))


async def test_cancel_closes_the_connection(caller: RowCaller, upstream: ScriptedUpstream) -> None:
    """A cancelled row leaves nothing running at the target."""
    upstream.on("their-m", never())
    task = asyncio.create_task(caller.call("m", "/v1/chat/completions", CHAT, "r", ONE))
    await upstream.until(upstream.calls)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await upstream.until(lambda: upstream.requests[0].peer_closed_at)


async def test_a_response_of_a_target_without_the_endpoint(
    caller: RowCaller, upstream: ScriptedUpstream
) -> None:
    """It is streamed a chat completion; the row gets the response that this comes to."""
    body = orjson.dumps({"model": "m", "input": "a b", "metadata": {"k": "v"}})
    got = await caller.call("m", "/v1/responses", body, "req_1", ONE)
    sent = upstream.calls()[0]
    assert (sent.path, sent.json["stream"]) == ("/v1/chat/completions", True)
    assert checked(got.body, "response")["metadata"] == {"k": "v"}
    assert got.body["output"][0]["content"][0]["text"].endswith("w15")
    assert got.usage is not None
    assert got.usage.completion == 16
    for odd in ({"choices": [{"message": {"tool_calls": [3]}}]}, {"choices": [{"message": 3}]}):
        upstream.enqueue(answer(odd))
        with pytest.raises(UpstreamFailed):
            await caller.call("m", "/v1/responses", body, "req_2", ONE)
    hosted = orjson.dumps({"model": "m", "input": "x", "tools": [{"type": "web_search"}]})
    with pytest.raises(InvalidRequest):
        await caller.call("m", "/v1/responses", hosted, "req_3", ONE)


async def test_a_response_of_a_target_with_the_endpoint(upstream: ScriptedUpstream) -> None:
    """A plain call that the target keeps nothing of."""
    target = {"base_url": upstream.url, "models": ["m"], "responses": True}
    policy = Policy.model_validate({"targets": {"one": target}})
    registry = Registry.from_policy(policy)
    upstream.enqueue(answer(native_response("hi")))
    body = orjson.dumps({"model": "m", "input": "x", "store": True})
    got = await RowCaller(Router(policy), registry).call("m", "/v1/responses", body, "req_1", ONE)
    sent = upstream.calls()[0]
    assert (sent.path, sent.json["store"], sent.json["stream"]) == ("/v1/responses", False, False)
    assert (got.body, got.usage) == (native_response("hi"), ReportedUsage(11, 4, 3))
    await registry.aclose()


async def test_vectors_in_the_encoding_asked_for(
    caller: RowCaller, upstream: ScriptedUpstream
) -> None:
    """A row gets base64 from a target that knows numbers alone; what is no vector is its fault."""
    body = orjson.dumps({"model": "m", "input": "x", "encoding_format": "base64"})
    row = {"object": "embedding", "index": 0, "embedding": [0.5, -1.25]}
    upstream.enqueue(answer({"data": [row]}), answer({"data": [{**row, "embedding": ["x"]}]}))
    got = await caller.call("m", "/v1/embeddings", body, "r1", ONE)
    assert got.body["data"][0]["embedding"] == packed([0.5, -1.25])
    with pytest.raises(UpstreamFailed):
        await caller.call("m", "/v1/embeddings", body, "r2", ONE)
