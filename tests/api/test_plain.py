"""Answers that are not streamed."""

import json

import orjson

from tests.support.gateway import running_gateway
from tests.support.scripts import raw
from tests.support.upstream import ScriptedUpstream


def test_bytes_are_passed_on(upstream: ScriptedUpstream) -> None:
    """The answer is what the target wrote, byte for byte, spaces and unknown members included."""
    body = b'{ "id" : "x", "vendor":{"a":[1.50, null]},"choices":[], "usage":{"prompt_tokens":2}}'
    upstream.enqueue(raw(body))
    with running_gateway({"up": {"base_url": upstream.url}}) as gateway:
        got = gateway.chat()
        assert got.content == body
        assert got.headers["content-type"] == "application/json"
        assert gateway.settled(1)[0].outcome.usage.prompt == 2


def test_usage_is_estimated_when_none_is_told(upstream: ScriptedUpstream) -> None:
    """A target without usage is counted by us, and the record says so."""
    message = {"role": "assistant", "content": "word " * 20}
    upstream.enqueue(raw(orjson.dumps({"choices": [{"message": message}]})))
    with running_gateway({"up": {"base_url": upstream.url}}) as gateway:
        gateway.chat()
        usage = gateway.settled(1)[0].outcome.usage
        assert usage.estimated
        assert usage.completion > 0


def test_an_object_that_is_no_answer_is_a_failure(upstream: ScriptedUpstream) -> None:
    """What lacks the choices that the API promises never goes out as a success."""
    with running_gateway({"up": {"base_url": upstream.url}}) as gateway:
        for body in (b"{}", b'{"choices":"abc"}', b'{"choices":[5]}'):
            upstream.enqueue(raw(body), raw(body), raw(body))
            assert gateway.chat().status_code == 502
            upstream.clear()


def test_half_a_pair_in_an_answer(upstream: ScriptedUpstream) -> None:
    """An answer that was cut within a character is passed on and counted; a tier can be put in."""
    body = rb'{"choices":[{"index":0,"message":{"role":"assistant","content":"hi \ud83d"}}]}'
    upstream.enqueue(raw(body), raw(body))
    with running_gateway({"up": {"base_url": upstream.url}}) as gateway:
        got = gateway.chat()
        assert (got.status_code, got.content) == (200, body)
        tiered = gateway.chat(service_tier="auto")
        assert tiered.status_code == 200
        assert json.loads(tiered.content) == {**json.loads(body), "service_tier": "default"}
        assert all(record.outcome.usage.completion > 0 for record in gateway.settled(2))
