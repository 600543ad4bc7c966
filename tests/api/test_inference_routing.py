"""Which target a call reaches, over real HTTP."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.support.answers import Pace
from tests.support.gateway import MODEL, chat_body, running_gateway, wait_until
from tests.support.scripts import Sse, answer, chat_chunk, error, never, once
from tests.support.upstream import ScriptedUpstream

QUICK = {"base": "10ms", "cap": "20ms"}
LONG = "word " * 3000
Targets = dict[str, dict[str, Any]]


def test_rty_06_fallback_too_small(upstream: ScriptedUpstream, upstream2: ScriptedUpstream) -> None:
    """RTY-06: a prompt that cannot fit the second target is not sent there; the record says so."""
    upstream.on(MODEL, error(503, "busy"))
    targets: Targets = {
        "up1": {"base_url": upstream.url, "retry": {"attempts": 2, **QUICK}},
        "up2": {"base_url": upstream2.url, "context": 1000},
    }
    with running_gateway(targets) as gateway:
        got = gateway.chat(LONG)
        assert (got.status_code, got.json()["error"]["message"]) == (503, "busy")
        assert not upstream2.calls()
        attempts = gateway.settled(1)[0].outcome.attempts
        assert [(a.target, a.code) for a in attempts[2:]] == [("up2", "context_too_small")]
        assert gateway.chat("short").status_code == 200


def test_rty_08_a_fallback_is_told(upstream: ScriptedUpstream, upstream2: ScriptedUpstream) -> None:
    """RTY-08: headers tell the model asked for, the one that served and that it took over."""
    upstream.on(MODEL, error(503))
    targets: Targets = {
        "up1": {"base_url": upstream.url, "retry": {"attempts": 1}},
        "up2": {"base_url": upstream2.url, "models": {"m2": "their-m2"}},
    }
    with running_gateway(targets, models={MODEL: {"fallback": ["m2"]}}) as gateway:
        for stream in (False, True):
            got = gateway.chat(stream=stream)
            assert got.headers["x-headway-fallback-from"] == MODEL
            assert got.headers["x-headway-served-model"] == "their-m2"
            assert got.headers["x-headway-attempts"] == "2"
        record = gateway.settled(2)[0]
        assert (record.intent.model, record.outcome.served_model) == (MODEL, "their-m2")
        assert (
            "x-headway-fallback-from"
            not in gateway.post("/v1/chat/completions", {**chat_body(), "model": "m2"}).headers
        )


@pytest.mark.parametrize(
    ("first", "second", "later"), [(2, 3, 2.3), pytest.param(5, 8, 6, marks=pytest.mark.long)]
)
def test_rty_14_everything_cooling(
    upstream: ScriptedUpstream,
    upstream2: ScriptedUpstream,
    first: int,
    second: int,
    later: float,
) -> None:
    """RTY-14: refused at once with the first one's time; then served by it."""
    for up, seconds in ((upstream, first), (upstream2, second)):
        up.enqueue(error(429, headers={"retry-after": str(seconds)}))
    limits = {"timeouts": {"total": 1}}
    targets: Targets = {
        "up1": {"base_url": upstream.url, **limits},
        "up2": {"base_url": upstream2.url, **limits},
    }
    with running_gateway(targets) as gateway:
        begun = time.monotonic()
        assert gateway.chat().status_code == 429
        refused = gateway.chat()
        record = gateway.settled(2)[1]
        assert record.outcome.ended_at - record.intent.started_at < 0.8  # its limit is 1 s
        assert (refused.status_code, refused.headers["retry-after"]) == (503, str(first))
        assert (len(upstream.calls()), len(upstream2.calls())) == (1, 1)
        time.sleep(max(0.0, begun + later - time.monotonic()))
        served = gateway.chat()
        assert (served.status_code, served.headers["x-headway-target"]) == (200, "up1")


def test_rty_21_long_calls_do_not_cool_a_route(upstream: ScriptedUpstream) -> None:
    """RTY-21: five refusals of long prompts are five requests; the short call is served there."""
    upstream.on("word word", error(400, "too long", code="context_length_exceeded"))
    target = {"base_url": upstream.url, "breaker": {"failures": 2}}
    with running_gateway({"up": target}) as gateway:
        assert [gateway.chat(LONG).status_code for _ in range(5)] == [400] * 5
        assert len(upstream.calls()) == 5
        assert gateway.chat("short").status_code == 200


def test_longer_context_takes_what_is_too_long(
    upstream: ScriptedUpstream, upstream2: ScriptedUpstream
) -> None:
    """A refusal in the words of vLLM leads to the model named for long prompts."""
    words = "This model's maximum context length is 2048 tokens. However, you requested 3000."
    upstream.on(MODEL, error(400, words))
    targets: Targets = {
        "up1": {"base_url": upstream.url},
        "up2": {"base_url": upstream2.url, "models": ["m-32k"]},
    }
    with running_gateway(targets, models={MODEL: {"longer_context": "m-32k"}}) as gateway:
        for stream in (False, True):
            got = gateway.chat(LONG, stream=stream)
            assert got.status_code == 200
            assert got.headers["x-headway-served-model"] == "m-32k"


def test_a_flapping_target_is_asked_once_a_pause(upstream: ScriptedUpstream) -> None:
    """While its breaker is open, calls are refused at once with the time of the next try."""
    upstream.on(MODEL, error(500), times=3)
    target = {
        "base_url": upstream.url,
        "retry": {"attempts": 1},
        "breaker": {"failures": 3, "pause": "2s"},
    }
    with running_gateway({"up": target}) as gateway:
        assert [gateway.chat().status_code for _ in range(3)] == [500] * 3
        refused = gateway.chat()
        assert refused.status_code == 503
        assert refused.headers["retry-after"] in {"1", "2"}
        assert refused.json()["error"]["code"] == "targets_unavailable"
        assert len(upstream.calls()) == 3
        wait_until(lambda: gateway.chat().status_code == 200, 10)
        assert len(upstream.calls()) == 4


def test_a_broken_stream_counts_against_its_target(
    upstream: ScriptedUpstream, upstream2: ScriptedUpstream
) -> None:
    """A failure after the first content cannot be mended, but the next calls go elsewhere."""
    upstream.on(MODEL, Sse([chat_chunk("a")], end="reset"))
    targets: Targets = {
        "up1": {"base_url": upstream.url, "breaker": {"failures": 2}},
        "up2": {"base_url": upstream2.url},
    }
    with running_gateway(targets) as gateway:
        for _ in range(2):
            assert "upstream_stream_interrupted" in gateway.chat(stream=True).text
        assert gateway.chat(stream=True).text.rstrip().endswith("[DONE]")
        assert len(upstream.calls()) == 2


@pytest.mark.parametrize("status", [401, 403, 429])
def test_keys_take_turns(
    upstream: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    """A key that is refused or throttled is left alone; the call goes on with the next at once."""
    monkeypatch.setattr("gateway.routing.credentials._FIRST_PAUSE", 60.0)
    upstream.on(lambda seen: seen.headers.get("authorization") == "Bearer k1", error(status, "no"))
    target = {"base_url": upstream.url, "api_keys": ["k1", "k2"]}
    with running_gateway({"up": target}) as gateway:
        assert [gateway.chat().status_code for _ in range(3)] == [200] * 3
        used = [seen.headers["authorization"] for seen in upstream.calls()]
        assert used == ["Bearer k1", *["Bearer k2"] * 3]
        codes = [a.status for a in gateway.settled(3)[0].outcome.attempts]
        assert codes == [status, 200]


def test_no_key_is_accepted(upstream: ScriptedUpstream) -> None:
    """502 without a second try by the client's library, and no word of the keys."""
    upstream.on(MODEL, error(401, "bad key k1"))
    target = {"base_url": upstream.url, "api_keys": ["k1", "k2"]}
    with running_gateway({"up": target}) as gateway:
        got = gateway.chat()
        assert (got.status_code, got.headers["x-should-retry"]) == (502, "false")
        assert "k1" not in got.text
        assert len(upstream.calls()) == 2


def test_a_full_target_spills_at_once(
    upstream: ScriptedUpstream, upstream2: ScriptedUpstream
) -> None:
    """Where the policy says ``now``, nobody waits for a place while another target has one."""
    free = threading.Event()
    message = {"role": "assistant", "content": "hi"}
    said = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    upstream.on(MODEL, once(free.is_set, answer(said)))
    lanes = {"interactive": {"max_in_flight": 1, "spill": "now"}}
    targets: Targets = {
        "up1": {"base_url": upstream.url, "lanes": lanes},
        "up2": {"base_url": upstream2.url},
    }
    with running_gateway(targets) as gateway, ThreadPoolExecutor(1) as pool:
        first = pool.submit(gateway.chat)
        upstream.wait(lambda: upstream.running == 1)
        assert gateway.chat().headers["x-headway-target"] == "up2"
        assert not first.done()
        free.set()
        assert first.result().headers["x-headway-target"] == "up1"


def test_the_advice_follows_the_queue(upstream: ScriptedUpstream) -> None:
    """A refused caller is told when the queue, as fast as it really moves, has room for it."""
    upstream.pace = Pace(first=0.25)
    lanes = {"interactive": {"max_in_flight": 1, "max_queue": 8}}
    with (
        running_gateway({"up": {"base_url": upstream.url, "lanes": lanes}}) as gateway,
        ThreadPoolExecutor(16) as pool,
    ):
        calls = [pool.submit(gateway.chat, max_tokens=1) for _ in range(5)]
        for call in calls:
            call.result()
        calls = [pool.submit(gateway.chat, max_tokens=1) for _ in range(12)]
        refused = [c.result() for c in calls if c.result().status_code == 429]
        assert refused
        assert {int(answer.headers["retry-after"]) for answer in refused} <= {2, 3, 4}


def test_attempts_share_the_total_limit(
    upstream: ScriptedUpstream, upstream2: ScriptedUpstream
) -> None:
    """A target that takes over has the time that is left, not a total of its own."""
    upstream.on(MODEL, never())
    upstream2.on(MODEL, never())
    retry = {"attempts": 1}
    targets: Targets = {
        "up1": {
            "base_url": upstream.url,
            "timeouts": {"first_byte": "1.5s", "total": "2s"},
            "retry": retry,
        },
        "up2": {"base_url": upstream2.url, "timeouts": {"total": "2s"}, "retry": retry},
    }
    with running_gateway(targets) as gateway:
        begun = time.monotonic()
        assert gateway.chat().status_code == 504
        assert 1.9 <= time.monotonic() - begun < 3.4
        assert (len(upstream.calls()), len(upstream2.calls())) == (1, 1)


@pytest.mark.parametrize("stream", [False, True])
def test_a_silent_target_is_noticed(
    upstream: ScriptedUpstream, upstream2: ScriptedUpstream, *, stream: bool
) -> None:
    """One that takes the call and says nothing is left after ``first_byte``; the next serves."""
    upstream.on(MODEL, never())
    targets: Targets = {
        "up1": {"base_url": upstream.url, "timeouts": {"first_byte": "200ms"}},
        "up2": {"base_url": upstream2.url},
    }
    with running_gateway(targets) as gateway:
        got = gateway.chat(stream=stream)
        assert (got.status_code, got.headers["x-headway-target"]) == (200, "up2")
        upstream.wait(lambda: upstream.calls()[0].peer_closed_at)


def test_an_alias_is_a_model(upstream: ScriptedUpstream) -> None:
    """It is served and listed; the target gets the name that it knows."""
    with running_gateway(
        {"up": {"base_url": upstream.url}}, models={MODEL: {"aliases": ["gpt-4o-mini"]}}
    ) as gateway:
        body = {**chat_body(), "model": "gpt-4o-mini"}
        assert gateway.post("/v1/chat/completions", body).status_code == 200
        assert upstream.calls()[0].model == MODEL


def test_answers_that_are_none_lead_on(
    upstream: ScriptedUpstream, upstream2: ScriptedUpstream
) -> None:
    """A 200 without choices is a failure of its target."""
    upstream.on(MODEL, answer({"hello": "there"}))
    targets = {"up1": {"base_url": upstream.url}, "up2": {"base_url": upstream2.url}}
    with running_gateway(targets) as gateway:
        assert gateway.chat().headers["x-headway-target"] == "up2"
