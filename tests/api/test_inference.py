"""Retries, fallback and statuses of calls over real HTTP."""

import json
import time
from email.utils import formatdate

import httpx
import openai
import orjson
import pytest

from gateway.core.clock import SystemClock
from tests.support.gateway import KEY, MODEL, chat_body, running_gateway
from tests.support.scripts import (
    Sse,
    answer,
    chat_chunk,
    error,
    hang_up,
    raw,
)
from tests.support.upstream import ScriptedUpstream

QUICK = {"base": "10ms", "cap": "20ms"}


def events_of(text: str) -> list[str]:
    """The data of every event of a streamed answer."""
    return [line[6:] for line in text.split("\n") if line.startswith("data: ")]


def test_rty_01_no_retry_after_content(
    upstream: ScriptedUpstream, upstream2: ScriptedUpstream
) -> None:
    """RTY-01: once content has come, no other target is asked and the end is an error event."""
    upstream.enqueue(Sse([chat_chunk(text) for text in "abc"], end="reset", pause=0.02))
    targets = {"up1": {"base_url": upstream.url}, "up2": {"base_url": upstream2.url}}
    with running_gateway(targets) as gateway:
        events = events_of(gateway.chat(stream=True).text)
        assert len(events) == 4
        assert orjson.loads(events[-1])["error"]["code"] == "upstream_stream_interrupted"
        assert (len(upstream.calls()), len(upstream2.calls())) == (1, 0)


def test_rty_02_fallback_before_content(
    upstream: ScriptedUpstream, upstream2: ScriptedUpstream
) -> None:
    """RTY-02: a role alone is not content: only the second target's stream is seen."""
    failing = {"error": {"message": "boom", "type": "server_error", "code": None}}
    upstream.enqueue(Sse([chat_chunk("", role="assistant"), failing]))
    targets = {"up1": {"base_url": upstream.url}, "up2": {"base_url": upstream2.url}}
    with running_gateway(targets) as gateway:
        got = gateway.chat(stream=True)
        chunks = [orjson.loads(event) for event in events_of(got.text)[:-1]]
        assert len({chunk["id"] for chunk in chunks}) == 1
        roles = [c for c in chunks if c["choices"][0]["delta"].get("role")]
        assert len(roles) == 1
        assert got.headers["x-headway-target"] == "up2"
        assert got.headers["x-headway-attempts"] == "2"
        assert [a.target for a in gateway.settled(1)[0].outcome.attempts] == ["up1", "up2"]


def test_rty_04_chain_used_up(upstream: ScriptedUpstream, upstream2: ScriptedUpstream) -> None:
    """RTY-04: two attempts each, then one 503 in the OpenAI form."""
    retry = {"attempts": 2, **QUICK}
    for up in (upstream, upstream2):
        up.on(MODEL, error(503, "busy"))
    targets = {
        "up1": {"base_url": upstream.url, "retry": retry},
        "up2": {"base_url": upstream2.url, "retry": retry},
    }
    with running_gateway(targets) as gateway:
        got = gateway.chat()
        assert got.status_code == 503
        assert set(got.json()["error"]) == {"message", "type", "param", "code"}
        assert (len(upstream.calls()), len(upstream2.calls())) == (2, 2)
        assert len(gateway.settled(1)[0].outcome.attempts) == 4


def test_rty_08_who_answered(upstream: ScriptedUpstream, upstream2: ScriptedUpstream) -> None:
    """RTY-08: body, headers and record name the model that served."""
    upstream.refuse()
    retry = {"attempts": 1}
    targets = {
        "up1": {"base_url": upstream.url, "retry": retry},
        "up2": {"base_url": upstream2.url, "models": {MODEL: "m2"}},
    }
    with running_gateway(targets) as gateway:
        got = gateway.chat()
        assert got.json()["model"] == "m2"
        assert got.headers["x-headway-served-model"] == "m2"
        assert gateway.settled(1)[0].outcome.served_model == "m2"


@pytest.mark.parametrize("form", ["seconds", "date", "ms"])
@pytest.mark.parametrize("wait", [1, pytest.param(3, marks=pytest.mark.long)])
def test_rty_10_retry_after(upstream: ScriptedUpstream, form: str, wait: int) -> None:
    """RTY-10: the second attempt starts at the told moment, at most 1.2 s later."""
    clock = SystemClock()
    second_told = int(clock.now() + wait + 1)
    date = formatdate(second_told, usegmt=True)
    moment = clock.monotonic() + second_told - clock.now()
    told = {
        "seconds": {"retry-after": f"{wait}"},
        "date": {"retry-after": date},
        "ms": {"retry-after-ms": f"{wait}000"},
    }[form]
    upstream.enqueue(error(429, headers=told))
    with running_gateway({"up": {"base_url": upstream.url}}) as gateway:
        assert gateway.chat().status_code == 200
        first, second = upstream.calls()
        due = moment if form == "date" else first.at + wait
        assert due - 0.01 <= second.at <= due + 1.2


def test_rty_10_too_long_to_wait(upstream: ScriptedUpstream) -> None:
    """RTY-10: a wait beyond the total limit gives the 429 at once, Retry-After kept."""
    upstream.enqueue(error(429, "slow down", headers={"retry-after": "3"}))
    with running_gateway({"up": {"base_url": upstream.url, "timeouts": {"total": 2}}}) as gateway:
        start = time.monotonic()
        got = gateway.chat()
        assert time.monotonic() - start < 1.5
        assert (got.status_code, got.headers["retry-after"]) == (429, "3")
        assert len(upstream.calls()) == 1


def test_rty_15_attempts_do_not_multiply(upstream: ScriptedUpstream) -> None:
    """RTY-15: three attempts are three requests."""
    upstream.on(MODEL, error(500))
    target = {"base_url": upstream.url, "retry": {"attempts": 3, **QUICK}}
    with running_gateway({"up": target}) as gateway:
        with (
            openai.OpenAI(base_url=gateway.url, api_key=KEY, max_retries=0) as client,
            pytest.raises(openai.InternalServerError),
        ):
            client.chat.completions.create(**chat_body())
        assert len(upstream.calls()) == 3


@pytest.mark.parametrize(
    ("idle", "first", "step", "calls"),
    [
        (0.05, 0.0485, 0.0001, 30),
        pytest.param(1.0, 1.001, 0.0, 50, marks=pytest.mark.long),
    ],
)
def test_rty_17_idle_connection_closed(
    upstream: ScriptedUpstream, idle: float, first: float, step: float, calls: int
) -> None:
    """RTY-17: calls at the very moment of the upstream's idle close all succeed, once each."""
    upstream.idle_close = idle
    with running_gateway({"up": {"base_url": upstream.url, "retry": {"attempts": 1}}}) as gateway:
        for number in range(calls):
            start = time.monotonic()
            assert gateway.chat(f"call {number}").status_code == 200
            time.sleep(max(0.0, first + number * step - (time.monotonic() - start)))
        assert len(upstream.calls()) == calls


@pytest.mark.parametrize(("resend", "requests"), [(False, 1), (True, 2)])
def test_rty_18_outcome_unknown(upstream: ScriptedUpstream, *, resend: bool, requests: int) -> None:
    """RTY-18: a fresh connection closed without a status: sent again only where asked for."""
    upstream.on(MODEL, hang_up(0.05))
    retry = {"attempts": 2, "resend_unknown": resend, **QUICK}
    with running_gateway({"up": {"base_url": upstream.url, "retry": retry}}) as gateway:
        assert gateway.chat().status_code in {502, 504}
        assert len(upstream.calls()) == requests
        attempts = gateway.settled(1)[0].outcome.attempts
        assert [a.code for a in attempts] == ["upstream_outcome_unknown"] * requests


def test_a_kept_connection_closed_late(upstream: ScriptedUpstream) -> None:
    """The target worked on the call before it closed a connection used before: sent once, 502."""
    with running_gateway({"up": {"base_url": upstream.url}}) as gateway:
        assert gateway.chat().status_code == 200
        upstream.on(MODEL, hang_up(0.6))
        assert gateway.chat().status_code == 502
        assert [seen.reused for seen in upstream.calls()] == [False, True]


@pytest.mark.parametrize("status", [400, 404, 413, 422, 429, 503])
def test_rty_19_status_keeps_its_meaning(upstream: ScriptedUpstream, status: int) -> None:
    """RTY-19: a target's status passes with an OpenAI error."""
    upstream.on(MODEL, error(status, "their words", code="their_code"))
    target = {"base_url": upstream.url, "retry": {"attempts": 1}}
    with running_gateway({"up": target}) as gateway:
        got = gateway.chat()
        assert got.status_code == status
        assert got.json()["error"]["message"] == "their words"
        assert set(got.json()["error"]) == {"message", "type", "param", "code"}


@pytest.mark.parametrize("status", [401, 403])
def test_rty_19_our_credential(upstream: ScriptedUpstream, status: int) -> None:
    """RTY-19: a target that refuses our key is a 502 without details."""
    upstream.on(MODEL, error(status, "bad key sk-upstream-secret"))
    target = {"base_url": upstream.url, "api_key": "sk-upstream-secret"}
    with running_gateway({"up": target}) as gateway:
        got = gateway.chat()
        assert got.status_code == 502
        assert "secret" not in got.text
        assert len(upstream.calls()) == 1


def test_rty_21_request_faults_are_answers(upstream: ScriptedUpstream) -> None:
    """RTY-21: a 400 is one upstream request, and the next call goes to the same target."""
    upstream.enqueue(error(400, "too long", code="context_length_exceeded"))
    with running_gateway({"up": {"base_url": upstream.url}}) as gateway:
        refused = gateway.chat("long")
        assert refused.status_code == 400
        assert refused.json()["error"]["code"] == "context_length_exceeded"
        assert len(upstream.calls()) == 1
        assert gateway.chat("short").status_code == 200


def test_cut_and_malformed_plain_answers(upstream: ScriptedUpstream) -> None:
    """A plain 200 that is no JSON object, or holds an error, is never passed on as 200."""
    upstream.enqueue(
        raw(b"<html>oops</html>"),
        answer({"error": {"message": "quota", "code": "insufficient_quota"}}),
    )
    with running_gateway({"up": {"base_url": upstream.url}}) as gateway:
        assert gateway.chat().status_code == 502
        quota = gateway.chat()
        assert quota.status_code == 429
        assert quota.headers["x-should-retry"] == "false"


@pytest.mark.parametrize("path", ["chat/completions", "completions", "embeddings"])
@pytest.mark.parametrize("levels", [260, 3000])
def test_a_body_nested_too_deeply(upstream: ScriptedUpstream, path: str, levels: int) -> None:
    """It is the caller's fault and says what is wrong; nothing is sent."""
    head = {"model": MODEL, "messages": [{"role": "user", "content": "x"}], "prompt": "x"}
    body = json.dumps({**head, "input": "x", "extra": 0})[:-2] + "[" * levels + "]" * levels + "}"
    with running_gateway({"up": {"base_url": upstream.url}}) as gateway:
        answer = httpx.post(
            f"{gateway.url}/{path}", content=body, headers={"authorization": f"Bearer {KEY}"}
        )
    assert answer.status_code == 400
    assert "nested too deeply" in answer.json()["error"]["message"]
    assert answer.json()["error"]["type"] == "invalid_request_error"
    assert not upstream.calls()


def test_a_large_body_arrives_whole(upstream: ScriptedUpstream) -> None:
    """Read and written in pieces, it is what the client sent; too many parts are refused."""
    messages = [{"role": "user", "content": f"say {n} }},{{ "} for n in range(10_000)]
    with running_gateway({"up": {"base_url": upstream.url}}) as gateway:
        assert gateway.chat(messages=messages, seed=10**25).status_code == 200
        sent = upstream.calls()[0].json
        assert (sent["messages"], sent["seed"]) == (messages, 10**25)
        refused = gateway.chat(messages=[{"role": "user"}] * 60_000, max_tokens=5)
        assert refused.status_code == 400
        assert refused.json()["error"]["code"] == "too_many_parts"
        assert len(upstream.calls()) == 1
