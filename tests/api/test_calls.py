"""What a call tells and records."""

import threading
from typing import Any

import pytest

from gateway.core.usage import Usage
from gateway.metering.record import CallStatus
from gateway.metering.unreported import unreported
from tests.support.exchange import Exchange
from tests.support.gateway import MODEL, RunningGateway, chat_body, running_gateway
from tests.support.scripts import Script, Sse, answer, chat_chunk, error, hang_up, never, raw
from tests.support.upstream import ScriptedUpstream

_TIMES = {"connect": "1s", "first_byte": "300ms", "idle": "300ms", "total": "5s"}
_ONCE = {"attempts": 1}
_THEN: dict[str, Any] = {"models": {MODEL: {"fallback": ["n"]}}}
_ROLE = chat_chunk("", role="assistant")
_BAD = {"error": {"message": "no", "type": "server_error", "code": "server_error"}}


async def _cut(exchange: Exchange) -> None:
    """A plain answer that stops in the middle."""
    exchange.head(200, {"content-type": "application/json"}, length=500)
    exchange.chunk(b'{"id": "x", "choices": [')
    await hang_up(0.02)(exchange)


def _target(upstream: ScriptedUpstream) -> dict[str, Any]:
    return {"base_url": upstream.url, "timeouts": _TIMES, "retry": _ONCE}


def _estimate(gateway: RunningGateway) -> None:
    """What the one call is recorded with that ended without a report."""
    [record] = gateway.settled(1)
    assert record.intent.prompt_bytes > 0
    assert record.outcome.usage == unreported(record.intent.prompt_bytes)
    assert record.outcome.usage.prompt > 0


def test_record_of_a_success(upstream: ScriptedUpstream) -> None:
    """Who, what, where, how many tokens and how it ended: once per call."""
    with running_gateway({"up": {"base_url": upstream.url}}) as gateway:
        got = gateway.chat("a b c", max_tokens=7)
        (record,) = gateway.settled(1)
        assert record.intent.id == got.headers["x-request-id"]
        assert (record.intent.tenant, record.intent.model) == ("default", MODEL)
        assert record.intent.max_completion == 7
        outcome = record.outcome
        assert (outcome.status, outcome.http_status, outcome.target) == (CallStatus.OK, 200, "up")
        assert (outcome.usage.prompt, outcome.usage.completion) == (3, 7)
        assert [(a.target, a.status) for a in outcome.attempts] == [("up", 200)]


def test_record_of_a_failure(upstream: ScriptedUpstream) -> None:
    """A failed call is recorded with what the caller got."""
    upstream.on(MODEL, error(422))
    with running_gateway({"up": {"base_url": upstream.url}}) as gateway:
        gateway.chat()
        outcome = gateway.settled(1)[0].outcome
        assert (outcome.status, outcome.http_status) == (CallStatus.FAILED, 422)
        assert [(a.status, a.code) for a in outcome.attempts] == [(422, "upstream_rejected")]


def test_what_never_began_is_not_recorded(upstream: ScriptedUpstream) -> None:
    """A request that is refused before a target is chosen costs nothing and has no record."""
    with running_gateway({"up": {"base_url": upstream.url}}) as gateway:
        gateway.post("/v1/chat/completions", {"model": MODEL})
        gateway.post("/v1/chat/completions", {**chat_body(), "model": "no"})
        gateway.chat()
        assert len(gateway.settled(1)) == len(gateway.records.opened_calls) == 1


@pytest.mark.parametrize(
    ("asked", "told"),
    [("auto", "default"), ("flex", "flex"), ("priority", "priority"), ("scale", "default")],
)
def test_tier_really_used_is_told(upstream: ScriptedUpstream, asked: str, told: str) -> None:
    """The answer echoes the tier used, streamed or not; who did not ask is told nothing."""
    with running_gateway({"up": {"base_url": upstream.url}}) as gateway:
        assert gateway.chat(service_tier=asked).json()["service_tier"] == told
        streamed = gateway.chat(service_tier=asked, stream=True)
        assert f'"service_tier":"{told}"' in streamed.text
        assert "service_tier" not in gateway.chat().json()
        assert upstream.calls()[0].json["service_tier"] == told


def test_tier_a_target_tells_itself_is_kept(upstream: ScriptedUpstream) -> None:
    """A provider's own word about the tier is the truth."""
    upstream.enqueue(answer({"choices": [], "service_tier": "scale"}))
    with running_gateway({"up": {"base_url": upstream.url}}) as gateway:
        assert gateway.chat(service_tier="auto").json()["service_tier"] == "scale"


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    "script", [never(), hang_up(), hang_up(reset=True), _cut, Sse([_ROLE], "close")]
)
def test_a_call_that_ended_without_a_report_is_an_estimate(
    upstream: ScriptedUpstream, script: Script, *, stream: bool
) -> None:
    """Silence and a cut: the target may have worked on the prompt, so it is counted."""
    upstream.on(MODEL, script)
    with running_gateway({"up": {"base_url": upstream.url, "timeouts": _TIMES}}) as gateway:
        gateway.chat(stream=stream)
        _estimate(gateway)
        assert gateway.records.last.outcome.status is CallStatus.FAILED
        assert len(upstream.calls()) == 1


@pytest.mark.parametrize("stream", [True, False])
def test_a_caller_that_leaves_before_the_first_byte_is_an_estimate(
    upstream: ScriptedUpstream, *, stream: bool
) -> None:
    """The target had the request."""
    upstream.on(MODEL, never())
    with running_gateway({"up": {"base_url": upstream.url}}) as gateway:
        gateway.given_up(stream=stream)
        _estimate(gateway)
        assert gateway.records.last.outcome.status is CallStatus.CANCELLED


def test_a_caller_that_leaves_before_anything_was_sent_costs_nothing(
    upstream: ScriptedUpstream,
) -> None:
    """It waited for a place; no target knows of it."""
    upstream.on(MODEL, never())
    lanes = {"interactive": {"max_in_flight": 1}}
    with running_gateway({"up": {"base_url": upstream.url, "lanes": lanes}}) as gateway:
        first = threading.Thread(target=gateway.given_up, args=(1.0,))
        first.start()
        upstream.wait(upstream.calls)
        gateway.given_up()
        first.join()
        waited, sent = gateway.settled(2)
        assert waited.outcome.status is sent.outcome.status is CallStatus.CANCELLED
        assert (waited.outcome.usage, waited.outcome.attempts) == (Usage(), ())
        assert sent.outcome.usage == unreported(sent.intent.prompt_bytes)


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    "script", [error(429), error(503), error(500), error(400), answer(_BAD), raw(b"<html>")]
)
def test_a_call_that_a_target_refused_is_an_exact_nothing(
    upstream: ScriptedUpstream, script: Script, *, stream: bool
) -> None:
    """Whoever says that it did nothing, or failed, or gave a page for an answer, is believed."""
    upstream.on(MODEL, script)
    with running_gateway({"up": {"base_url": upstream.url, "retry": _ONCE}}) as gateway:
        gateway.chat(stream=stream)
        assert gateway.settled(1)[0].outcome.usage == Usage()


def test_a_target_that_is_not_there_costs_nothing(upstream: ScriptedUpstream) -> None:
    """A refused connection reached nobody."""
    upstream.refuse()
    with running_gateway({"up": {"base_url": upstream.url, "retry": _ONCE}}) as gateway:
        gateway.chat()
        assert gateway.settled(1)[0].outcome.usage == Usage()


@pytest.mark.parametrize("stream", [True, False])
def test_only_the_target_that_answers_is_counted(
    upstream: ScriptedUpstream, upstream2: ScriptedUpstream, *, stream: bool
) -> None:
    """What another one may have done before is in the attempts, not in the caller's tokens."""
    upstream.on(MODEL, never())
    targets = {"up": _target(upstream), "up2": {**_target(upstream2), "models": ["n"]}}
    with running_gateway(targets, **_THEN) as gateway:
        assert gateway.chat("a b c", max_tokens=7, stream=stream).status_code == 200
        outcome = gateway.settled(1)[0].outcome
        assert outcome.usage == Usage(3, 7)
        assert [(a.target, a.code) for a in outcome.attempts] == [("up", "timeout"), ("up2", None)]


@pytest.mark.parametrize("last", [error(500), never()])
def test_what_several_targets_may_have_done_is_counted_once(
    upstream: ScriptedUpstream, upstream2: ScriptedUpstream, last: Script
) -> None:
    """One prompt, however many targets were asked and whatever the last one said."""
    upstream.on(MODEL, never())
    upstream2.on("n", last)
    targets = {"up": _target(upstream), "up2": {**_target(upstream2), "models": ["n"]}}
    with running_gateway(targets, **_THEN) as gateway:
        gateway.chat()
        _estimate(gateway)
        assert [a.target for a in gateway.records.last.outcome.attempts] == ["up", "up2"]
