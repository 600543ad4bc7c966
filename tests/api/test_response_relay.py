"""Streams of both kinds of targets as events of a response."""

import json
from typing import Any

import orjson
import pytest

from gateway.api.relay import HEARTBEAT
from gateway.api.response_relay import ChatRelay, NativeRelay, ResponseRelay
from gateway.core.errors import StreamInterrupted, UpstreamFailed, UpstreamThrottled
from gateway.metering.counter import StreamMeter
from gateway.providers.scrubber import Scrubber
from gateway.responses.shape import new_response
from tests.support.clock import ManualClock
from tests.support.responses import native_events
from tests.support.scripts import chat_chunk, usage_chunk

BEGUN = new_response("resp_1", 5, {"model": "m", "input": "x"}, status="in_progress", tier=None)
SCRUB = Scrubber.of("http://secret.host:1234/v1", "sk-secret")


def chat_relay() -> ChatRelay:
    """Of a target that is asked for a chat completion."""
    return ChatRelay("t", SCRUB, StreamMeter(100, 0.0), BEGUN, ManualClock(9))


def native_relay() -> NativeRelay:
    """Of a target that has the endpoint."""
    return NativeRelay("t", SCRUB, StreamMeter(100, 0.0), BEGUN)


def event(value: Any) -> bytes:
    """As a target writes it."""
    return b"data: " + orjson.dumps(value) + b"\n\n"


def _whole(relay: ResponseRelay, body: bytes) -> bytes:
    shown = relay.take(body, 1.0)
    return shown if relay.done else shown + relay.end(2.0)


def _types(data: bytes) -> list[str]:
    lines = [line for line in data.split(b"\n") if line.startswith(b"data: ")]
    return [orjson.loads(line[6:])["type"] for line in lines]


CHUNKS = [
    chat_chunk(role="assistant"),
    chat_chunk("a"),
    chat_chunk(finish="stop"),
    usage_chunk(3, 1),
]
CHAT = b"".join(map(event, CHUNKS)) + b"data: [DONE]\n\n"
NATIVE = b"".join(map(event, native_events("a")))


@pytest.mark.parametrize(("make", "whole"), [(chat_relay, CHAT), (native_relay, NATIVE)])
@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_any_split(make: Any, whole: bytes, size: int) -> None:
    """The same events however the bytes come; with CRLF, too."""
    for body in (whole, whole.replace(b"\n", b"\r\n")):
        relay: ResponseRelay = make()
        pieces = [body[at : at + size] for at in range(0, len(body), size)]
        shown = b"".join(relay.take(piece, 1.0) for piece in pieces)
        if not relay.done:
            shown += relay.end(2.0)
        types = _types(shown)
        assert types[:2] == ["response.created", "response.in_progress"]
        assert types[-1] == "response.completed"
        assert types.count("response.output_text.delta") == 1
        assert relay.committed
        assert relay.done
        assert relay.response["id"] == "resp_1"
        assert not relay.usage.estimated


def test_a_role_alone_is_no_content() -> None:
    """Until content comes another target may take over."""
    relay = chat_relay()
    shown = relay.take(event(chat_chunk(role="assistant")), 1.0)
    assert _types(shown) == ["response.created", "response.in_progress"]
    assert not relay.committed
    assert relay.take(b": ping\n\n", 1.0) == HEARTBEAT


def test_the_start_of_a_native_stream_is_no_content() -> None:
    """Names of tools that it echoes are none either."""
    relay = native_relay()
    tools = [{"type": "function", "name": "get", "parameters": {}}]
    begun = {**native_events("a")[0]}
    begun["response"] = {**begun["response"], "tools": tools}
    relay.take(event(begun), 1.0)
    assert not relay.committed


_DONE = b"data: [DONE]\n\n"


def _half(whole: bytes) -> bytes:
    return whole[: whole.rindex(b"data: {", 0, len(whole) // 2)]


@pytest.mark.parametrize(
    ("make", "cut"),
    [
        (chat_relay, _half(CHAT)),
        (chat_relay, _DONE),
        (native_relay, _half(NATIVE)),
        (native_relay, _half(NATIVE) + _DONE),
    ],
)
def test_cut(make: Any, cut: bytes) -> None:
    """A stream without its end is never taken for a whole one; of a native one it is an event."""
    relay: ResponseRelay = make()
    with pytest.raises(StreamInterrupted):
        _whole(relay, cut)
    assert not relay.done


def test_done_without_a_reason() -> None:
    """``[DONE]`` is the end of a chat stream that tells no reason, as it is for chat clients."""
    relay = chat_relay()
    shown = _whole(relay, _half(CHAT) + _DONE)
    assert relay.done
    assert relay.response["status"] == "completed"
    assert b"response.completed" in shown


@pytest.mark.parametrize("make", [chat_relay, native_relay])
@pytest.mark.parametrize("data", [b"{", b"[]", b'"x"', b'{"choices":3}', b'{"choices":["x"]}'])
def test_malformed(make: Any, data: bytes) -> None:
    """An event that is none of its API is the target's failure."""
    relay: ResponseRelay = make()
    with pytest.raises(UpstreamFailed):
        relay.take(b"data: " + data + b"\n\n", 1.0)


@pytest.mark.parametrize("make", [chat_relay, native_relay])
def test_error_events(make: Any) -> None:
    """Classified, and without what would tell where the target is."""
    error = {"message": "at secret.host:1234 with sk-secret", "code": "rate_limit_exceeded"}
    for data in (
        event({"error": error}),
        b"event: error\n" + event(error),
        b"event: error\n" + event({"type": "error", **error}),
    ):
        relay: ResponseRelay = make()
        with pytest.raises(UpstreamThrottled) as caught:
            relay.take(data, 1.0)
        assert "secret" not in caught.value.message


def test_a_native_failure() -> None:
    """``response.failed`` is remembered as what it is; an error without a name as well."""
    relay = native_relay()
    error = {"code": "server_error", "message": "at secret.host"}
    failed = {"type": "response.failed", "response": {"error": error, "status": "failed"}}
    with pytest.raises(UpstreamFailed) as caught:
        relay.take(event(failed), 1.0)
    assert relay.failed
    assert "secret" not in caught.value.message
    bare = native_relay()
    with pytest.raises(UpstreamFailed, match="broken"):
        bare.take(event({"type": "error", "code": "x", "message": "broken"}), 1.0)


def test_a_character_in_two_chunks() -> None:
    """Each delta is as it came; the text at the end has the whole character."""
    halves = [event(chat_chunk("HALF")).replace(b"HALF", half) for half in (rb"\ud83d", rb"\ude42")]
    relay = chat_relay()
    shown = _whole(relay, b"".join([*halves, *map(event, CHUNKS[2:])]) + b"data: [DONE]\n\n")
    assert rb"\ud83d\ude42" in shown
    told = [json.loads(line[6:]) for line in shown.split(b"\n") if line.startswith(b"data: ")]
    deltas = [part["delta"] for part in told if part["type"] == "response.output_text.delta"]
    assert deltas == ["\ud83d", "\ude42"]
    assert told[-1]["response"]["output"][0]["content"][0]["text"] == "🙂"
