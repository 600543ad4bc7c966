"""Each fault of a target ends in a complete answer or an explicit error, never in neither."""

from collections.abc import Callable
from typing import Any

import httpx
import orjson
import pytest

from gateway.metering.record import CallRecord, CallStatus
from tests.support.exchange import Exchange
from tests.support.gateway import RunningGateway, running_gateway
from tests.support.scripts import (
    Script,
    Sse,
    after,
    chat_chunk,
    error,
    hang_up,
    never,
    raw,
    usage_chunk,
)
from tests.support.upstream import ScriptedUpstream

_TIMES = {"connect": "1s", "first_byte": "800ms", "idle": "800ms", "total": "5s"}
_RETRY = {"attempts": 2, "base": "10ms", "cap": "10ms"}
_END = [chat_chunk(finish="stop"), usage_chunk(3, 60)]
_ERROR = {"error": {"message": "boom", "type": "server_error", "param": None, "code": "boom"}}
_HTML = {"content-type": "text/html"}


def _tokens(count: int) -> list[dict[str, Any]]:
    return [chat_chunk(f"w{n} ") for n in range(count)]


def _body_cut(end: str) -> Script:
    """A plain answer that stops in the middle: ``close``, ``reset`` or ``hang``."""

    async def script(exchange: Exchange) -> None:
        exchange.head(200, {"content-type": "application/json"}, length=500)
        exchange.chunk(b'{"id": "x", "choices": [')
        await (never() if end == "hang" else hang_up(0.02, reset=end == "reset"))(exchange)

    return script


#: Faults that come before any content: another target may take over.
BEFORE: dict[str, tuple[Script, Script]] = {
    "header-silent": (never(), never()),
    "closed without a byte": (hang_up(), hang_up()),
    "reset without a byte": (hang_up(reset=True), hang_up(reset=True)),
    "wrong content type": (raw(b"<html>", headers=_HTML), raw(b"<html>", headers=_HTML)),
    "server error": (error(500), error(500)),
    "html error": (raw(b"<h1>502</h1>", 502, headers=_HTML), raw(b"<h1>502</h1>", 502)),
    "error as first event": (Sse([_ERROR]), raw(orjson.dumps(_ERROR))),
    "empty": (Sse([], end="body"), raw(b"")),
    "nothing but an end": (Sse([]), raw(b"{}")),
}
#: Of these it is not known whether the target worked on the call, so it is not sent again.
UNKNOWN = frozenset({"closed without a byte", "reset without a byte"})
#: Faults after content: streamed ones cannot be taken over, plain ones can.
AFTER: dict[str, tuple[Script, Script]] = {
    "cut at 40 tokens": (Sse(_tokens(40), end="close"), _body_cut("close")),
    "cut at 60 tokens": (Sse(_tokens(60), end="reset"), _body_cut("reset")),
    "stall": (Sse(_tokens(5), end="hang"), _body_cut("hang")),
    "malformed chunk": (
        Sse([*_tokens(2), b'data: {"choices": [{"delta"\n\n', *_END], pause=0.05),
        raw(b'{"choices": ['),
    ),
    "error after the first event": (
        Sse([*_tokens(2), _ERROR], pause=0.05),
        raw(orjson.dumps(_ERROR)),
    ),
}
ALL = {**BEFORE, **AFTER}


def _end_of(answer: httpx.Response) -> str:
    """``complete`` or ``error``; anything else fails."""
    if answer.status_code != 200:
        assert set(answer.json()["error"]) >= {"message", "type", "param", "code"}
        return "error"
    if not answer.headers["content-type"].startswith("text/event-stream"):
        choice = answer.json()["choices"][0]
        assert choice["finish_reason"]
        return "complete"
    events = [line[6:] for line in answer.text.split("\n") if line.startswith("data: ")]
    errors = [event for event in events if event.startswith('{"error"')]
    if events[-1] == "[DONE]":
        chunks = [orjson.loads(event) for event in events[:-1]]
        assert not errors
        assert any(c["finish_reason"] for chunk in chunks for c in chunk["choices"])
        return "complete"
    assert errors == events[-1:]
    assert "[DONE]" not in answer.text
    return "error"


def _target(upstream: ScriptedUpstream, **members: Any) -> dict[str, Any]:
    return {"base_url": upstream.url, "timeouts": _TIMES, "retry": _RETRY, **members}


def _status(gateway: RunningGateway) -> CallRecord:
    """The one record of the one call."""
    [record] = gateway.settled(1)
    return record


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("fault", ALL)
def test_a_fault_of_the_only_target(
    upstream: ScriptedUpstream, fault: str, *, stream: bool
) -> None:
    """An explicit error, recorded as a failure with the tokens that came."""
    upstream.on("m", ALL[fault][0 if stream else 1])
    with running_gateway({"up": _target(upstream)}) as gateway:
        answer = gateway.chat(stream=stream)
        assert _end_of(answer) == "error"
        assert "127.0.0.1" not in answer.text
        outcome = _status(gateway).outcome
        assert outcome.status is CallStatus.FAILED
        assert outcome.http_status == answer.status_code
        if stream and fault in AFTER:
            assert outcome.usage.estimated
            assert outcome.usage.completion >= answer.text.count('"content"')
        else:
            assert outcome.usage.completion == 0


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("fault", ALL)
def test_a_fault_of_the_first_of_two_targets(
    upstream: ScriptedUpstream, upstream2: ScriptedUpstream, fault: str, *, stream: bool
) -> None:
    """The other one answers, but never after content has gone out."""
    upstream.on("m", ALL[fault][0 if stream else 1])
    targets = {"up": _target(upstream), "up2": _target(upstream2)}
    with running_gateway(targets) as gateway:
        for _ in range(30):  # whichever is tried first
            answer = gateway.chat(stream=stream)
            if upstream.calls():
                break
            upstream2.clear()
            gateway.records.all.clear()
        record = _status(gateway)
        if stream and fault in AFTER:
            assert _end_of(answer) == "error"
            assert upstream2.calls() == []
            assert record.outcome.status is CallStatus.FAILED
            return
        if fault in UNKNOWN:
            assert _end_of(answer) == "error"
            assert upstream2.calls() == []
            assert record.outcome.status is CallStatus.FAILED
            return
        assert answer.headers["x-headway-target"] == "up2"
        assert record.outcome.target == "up2"
        usage = upstream2.calls()[0].usage
        assert usage is not None
        assert (record.outcome.usage.prompt, record.outcome.usage.completion) == (
            usage["prompt_tokens"],
            usage["completion_tokens"],
        )


@pytest.mark.parametrize("stream", [True, False])
def test_a_target_that_refuses_connections(upstream: ScriptedUpstream, *, stream: bool) -> None:
    """Nothing was sent anywhere: an explicit error."""
    target = _target(upstream)
    upstream.refuse()
    with running_gateway({"up": target}) as gateway:
        answer = gateway.chat(stream=stream)
        assert answer.status_code == 503
        assert _end_of(answer) == "error"
        assert _status(gateway).outcome.status is CallStatus.FAILED


@pytest.mark.parametrize("stream", [True, False])
def test_what_is_only_slow_or_busy_completes(upstream: ScriptedUpstream, *, stream: bool) -> None:
    """A slow first byte is waited for; a 429 that names a second is tried again after it."""
    upstream.pace.first = 0.2
    upstream.enqueue(error(429, headers={"retry-after": "1"}))
    with running_gateway({"up": _target(upstream)}) as gateway:
        answer = gateway.chat(stream=stream)
        assert _end_of(answer) == "complete"
        first, second = upstream.calls()
        assert 0.99 <= second.at - first.at < 3
        usage = _status(gateway).outcome.usage
        assert (usage.prompt, usage.completion, usage.estimated) == (2, 16, False)


@pytest.mark.parametrize("stream", [True, False])
def test_a_429_for_two_minutes_is_told(upstream: ScriptedUpstream, *, stream: bool) -> None:
    """Nobody is kept waiting that long: the caller hears it at once, with the time."""
    upstream.on("m", error(429, headers={"retry-after": "130"}))
    with running_gateway({"up": _target(upstream)}) as gateway:
        answer = gateway.chat(stream=stream)
        assert answer.status_code == 429
        assert _end_of(answer) == "error"
        assert answer.headers["retry-after"] == "130"
        assert answer.elapsed.total_seconds() < 2


@pytest.mark.parametrize("stream", [True, False])
def test_a_401_on_one_of_two_keys(upstream: ScriptedUpstream, *, stream: bool) -> None:
    """The other key is used at once; neither ever shows."""
    upstream.on(_has_key("sk-old"), error(401, "sk-old is revoked"))
    target = _target(upstream, api_keys=["sk-old", "sk-new"])
    with running_gateway({"up": target}) as gateway:
        answers = [gateway.chat(stream=stream) for _ in range(2)]
        assert [_end_of(answer) for answer in answers] == ["complete"] * 2
        assert not any("sk-" in answer.text for answer in answers)
        assert [record.outcome.status for record in gateway.settled(2)] == [CallStatus.OK] * 2


def _has_key(key: str) -> Callable[[Any], bool]:
    return lambda seen: seen.headers.get("authorization") == f"Bearer {key}"


def test_missing_usage_is_estimated(upstream: ScriptedUpstream) -> None:
    """A stream that never tells its usage is complete, and billed from what was counted."""
    upstream.enqueue(after(0.0, Sse([*_tokens(12), chat_chunk(finish="stop")])))
    with running_gateway({"up": _target(upstream)}) as gateway:
        assert _end_of(gateway.chat(stream=True)) == "complete"
        usage = _status(gateway).outcome.usage
        assert usage.estimated
        assert usage.completion >= 12
