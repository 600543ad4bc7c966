"""What a call tells and records."""

import pytest

from gateway.metering.record import CallStatus
from tests.support.gateway import MODEL, chat_body, running_gateway
from tests.support.scripts import answer, error
from tests.support.upstream import ScriptedUpstream


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
