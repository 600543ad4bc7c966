"""Answers that are not streamed."""

import json
import threading
from typing import Any

import orjson
import pytest

from gateway.api import plain
from gateway.core.large_json import LARGE
from gateway.metering.counter import answer_usage
from tests.support.gateway import running_gateway
from tests.support.scripts import Sse, raw
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


def test_a_long_integer_in_an_answer(upstream: ScriptedUpstream) -> None:
    """It stays when a tier is put in, streamed or not."""
    told: dict[str, Any] = {"seed": 2**70, "choices": [{"index": 0, "finish_reason": "stop"}]}
    for part in ("message", "delta"):
        told["choices"][0][part] = {"content": "a"}
        body = json.dumps(told).encode()
        upstream.enqueue(raw(body) if part == "message" else Sse([b"data: %b\n\n" % body]))
    with running_gateway({"up": {"base_url": upstream.url}}) as gateway:
        for stream in (False, True):
            text = gateway.chat(service_tier="auto", stream=stream).text
            assert f'"seed":{2**70}' in text
            assert '"service_tier":"default"' in text


def test_an_answer_that_is_too_long(upstream: ScriptedUpstream) -> None:
    """It is a failure of the target that names the limit, and not kept beyond it."""
    body = orjson.dumps({"choices": [{"message": {"content": "x" * 20_000}}]})
    upstream.enqueue(*[raw(body)] * 5)
    with running_gateway({"up": {"base_url": upstream.url}}, max_answer_bytes=10_000) as gateway:
        got = gateway.chat()
        assert got.status_code == 502
        assert got.json()["error"]["code"] == "answer_too_long"
        assert "10000 bytes" in got.json()["error"]["message"]


def test_a_long_answer_is_read_beside_the_loop(
    upstream: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large one in a thread, with what is made of it; a small one is not worth that."""
    threads = []

    def noted(*call: Any) -> Any:
        threads.append(threading.current_thread().name)
        return answer_usage(*call)

    monkeypatch.setattr(plain, "answer_usage", noted)
    sizes = (100, 200_000)
    bodies = [orjson.dumps({"choices": [{"message": {"content": "x" * n}}]}) for n in sizes]
    upstream.enqueue(*map(raw, bodies))
    with running_gateway({"up": {"base_url": upstream.url}}) as gateway:
        assert gateway.chat().content == bodies[0]
        tiered = gateway.chat(service_tier="auto").json()
        assert tiered == {**orjson.loads(bodies[1]), "service_tier": "default"}
    assert [name.startswith("asyncio_") for name in threads] == [False, True]


@pytest.mark.parametrize("size", [2 * LARGE, 2 * LARGE + 1, 3 * LARGE - 1])
def test_a_large_answer_goes_out_in_pieces(upstream: ScriptedUpstream, size: int) -> None:
    """It is whole, whatever its length."""
    head, tail = b'{"choices":[{"message":{"content":"', b'"}}]}'
    body = head + b"x" * (size - len(head) - len(tail)) + tail
    upstream.enqueue(raw(body))
    with running_gateway({"up": {"base_url": upstream.url}}) as gateway:
        got = gateway.chat()
        assert got.headers["content-length"] == str(size)
        assert got.content == body
