"""Calls to a model that several equal targets serve, over real HTTP."""

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.support.answers import Pace
from tests.support.gateway import MODEL, chat_body, running_gateway, wait_until
from tests.support.scripts import after, hang_up
from tests.support.upstream import ScriptedUpstream

Targets = dict[str, dict[str, Any]]


def replicas(*upstreams: ScriptedUpstream, **members: Any) -> Targets:
    """Targets that share the calls."""
    return {
        f"up{n}": {"base_url": up.url, "weight": 1, **members} for n, up in enumerate(upstreams)
    }


def test_a_conversation_stays_at_its_replica(
    upstream: ScriptedUpstream, upstream2: ScriptedUpstream
) -> None:
    """Every turn of a conversation reaches the target of its first; conversations spread."""
    with running_gateway(replicas(upstream, upstream2)) as gateway:
        homes: Counter[str] = Counter()
        for number in range(12):
            messages = [{"role": "user", "content": f"conversation {number}"}]
            seen = set()
            for turn in range(4):
                got = gateway.post("/v1/chat/completions", {"model": MODEL, "messages": messages})
                seen.add(got.headers["x-headway-target"])
                messages += [
                    {"role": "assistant", "content": f"answer {turn}"},
                    {"role": "user", "content": f"and {turn}?"},
                ]
            assert len(seen) == 1
            homes.update(seen)
        assert len(homes) == 2


@pytest.mark.parametrize("how", ["header", "prompt_cache_key", "user"])
def test_a_named_session_stays(
    upstream: ScriptedUpstream, upstream2: ScriptedUpstream, how: str
) -> None:
    """Whatever is said in it."""
    with running_gateway(replicas(upstream, upstream2)) as gateway:
        for number in range(10):
            body = chat_body(f"something else {number}")
            named = {how: "s1"} if how != "header" else {}
            headers = {"x_headway_session": "s1"} if how == "header" else {}
            gateway.post("/v1/chat/completions", {**body, **named}, **headers)
        assert sorted([len(upstream.calls()), len(upstream2.calls())]) == [0, 10]


def test_one_hot_session_is_spread(upstream: ScriptedUpstream, upstream2: ScriptedUpstream) -> None:
    """A session with many calls at once takes no more than its share and a quarter of a replica."""
    upstream.pace = upstream2.pace = Pace(first=0.5)
    with running_gateway(replicas(upstream, upstream2)) as gateway, ThreadPoolExecutor(32) as pool:
        done = list(pool.map(lambda _: gateway.chat(user="s1").status_code, range(32)))
        assert done == [200] * 32
        assert max(upstream.peak, upstream2.peak) <= 0.5 * 1.25 * 33 + 1


def test_a_replica_that_dies_costs_no_call(
    upstream: ScriptedUpstream, upstream2: ScriptedUpstream
) -> None:
    """The other one takes over at once, and gets all of it while the first is out."""
    targets: Targets = replicas(upstream, upstream2, breaker={"failures": 2, "pause": "1s"})
    with running_gateway(targets) as gateway:
        upstream.refuse()
        got = [gateway.chat(f"call {number}") for number in range(20)]
        assert [answer.status_code for answer in got] == [200] * 20
        assert sum(answer.headers["x-headway-attempts"] == "2" for answer in got) <= 6
        upstream.start()
        wait_until(lambda: gateway.chat(f"{time.monotonic()}").is_success and upstream.calls())


@pytest.mark.parametrize("reset", [False, True])
def test_unknown_outcomes_stay_at_the_target(
    upstream: ScriptedUpstream, upstream2: ScriptedUpstream, *, reset: bool
) -> None:
    """What may have been done is not done again elsewhere, of equal targets neither."""
    for up in (upstream, upstream2):
        up.on(MODEL, after(0.05, hang_up(reset=reset)))
    with running_gateway(replicas(upstream, upstream2)) as gateway:
        assert gateway.chat().status_code == 502
        assert len(upstream.calls()) + len(upstream2.calls()) == 1
