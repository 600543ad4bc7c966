"""Which lane a call gets, and why."""

import time
from typing import Any

import pytest

from gateway.core.errors import InvalidRequest
from gateway.core.lanes import Lane
from gateway.policy.model import ClassifyPolicy
from gateway.routing.classifier import CallFacts, Classifier
from tests.support.gateway import running_gateway
from tests.support.upstream import ScriptedUpstream


def facts(
    headers: dict[bytes, bytes] | None = None, *, items: int = 1, **members: Any
) -> CallFacts:
    """A chat call of key ``k``."""
    return CallFacts("/v1/chat/completions", "m", headers or {}, members, items, "k", "t")


def lane_of(given: CallFacts, ceiling: Lane = Lane.INTERACTIVE, **policy: Any) -> tuple[str, str]:
    """Lane and reason."""
    decision = Classifier(ClassifyPolicy.model_validate(policy)).classify(given, ceiling)
    return decision.lane.value, decision.reason


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (facts(), ("interactive", "default")),
        (facts({b"x-headway-class": b"elastic"}, stream=True), ("elastic", "header")),
        (facts({b"x-workload-class": b"Interactive"}), ("interactive", "header")),
        (facts({b"x-headway-class": b"batch"}), ("elastic", "header")),
        (facts({b"x-smg-priority": b"bulk"}), ("elastic", "header:x-smg-priority")),
        (facts({b"x-smg-priority": b"what"}), ("interactive", "default")),
        (facts(service_tier="flex", stream=True), ("elastic", "service_tier")),
        (facts(service_tier="priority"), ("interactive", "service_tier")),
        (facts(service_tier="auto", stream=True), ("interactive", "stream")),
        (facts(metadata={"workload": "offline"}, stream=True), ("elastic", "metadata")),
        (facts({b"x-stainless-read-timeout": b"900"}), ("elastic", "read_timeout")),
        (facts({b"x-stainless-read-timeout": b"600"}), ("interactive", "default")),
        (facts({b"x-stainless-read-timeout": b"x"}), ("interactive", "default")),
        (facts(items=17, stream=True), ("elastic", "array")),
        (facts(items=16), ("interactive", "default")),
        (facts(user="u1"), ("interactive", "user")),
    ],
)
def test_explicit_rules(given: CallFacts, expected: tuple[str, str]) -> None:
    """The first rule that matches decides."""
    assert lane_of(given) == expected


def test_a_class_that_is_none_is_refused() -> None:
    """A wrong value of our own header is an error, not a guess."""
    with pytest.raises(InvalidRequest):
        lane_of(facts({b"x-headway-class": b"fastest"}))


def test_default_of_the_policy() -> None:
    """The policy names the default; a synchronous call is never batch."""
    assert lane_of(facts(), default="batch") == ("elastic", "default")
    assert lane_of(facts(user="u"), default="elastic") == ("interactive", "user")


def test_ceiling_clamps_every_rule() -> None:
    """No hint lifts a call above its key's ceiling, and the reason says so."""
    for given in (
        facts({b"x-headway-class": b"interactive"}),
        facts(service_tier="priority"),
        facts(stream=True),
    ):
        lane, reason = lane_of(given, Lane.BATCH)
        assert lane == "elastic"
        assert reason.endswith("+ceiling")
    assert lane_of(facts(service_tier="flex"), Lane.ELASTIC) == ("elastic", "service_tier")


def test_policy_rules_match_on_every_field() -> None:
    """Key, tenant, model, endpoint and agent must all fit."""
    rule = {
        "lane": "elastic",
        "keys": ["k"],
        "tenants": ["t"],
        "models": ["m"],
        "endpoints": ["/v1/chat/completions"],
        "user_agent": "Eval*",
    }
    assert lane_of(facts({b"user-agent": b"evaluator/1"}), rules={"r": rule})[1] == "policy:r"
    assert lane_of(facts({b"user-agent": b"curl"}), rules={"r": rule})[1] == "default"
    assert lane_of(facts(), rules={"r": {"lane": "elastic", "keys": ["z"]}})[1] == "default"


def test_cls_03_two_rules_match() -> None:
    """CLS-03: of two rules that match the first in the file wins, always."""
    rules = {"one": {"lane": "elastic"}, "two": {"lane": "interactive"}}
    reasons = {lane_of(facts(), rules=rules)[1] for _ in range(100)}
    assert reasons == {"policy:one"}


def test_a_decision_takes_under_50_us() -> None:
    """Classifying costs next to nothing even with many policy rules."""
    rules = {f"r{n}": {"lane": "elastic", "keys": [f"k{n}"]} for n in range(20)}
    classifier = Classifier(ClassifyPolicy.model_validate({"rules": rules}))
    given = facts({b"user-agent": b"x", b"x-stainless-read-timeout": b"600"})
    rounds = []
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(500):
            classifier.classify(given, Lane.INTERACTIVE)
        rounds.append((time.perf_counter() - start) / 500)
    assert min(rounds) < 50e-6


def test_cls_01_a_caller_cannot_raise_its_class(upstream: ScriptedUpstream) -> None:
    """CLS-01: an offline key stays offline; headers and record show class and rule."""
    keys = {"a": {"key": "sk-offline-key-1", "ceiling": "elastic"}}
    body = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
    with running_gateway({"up": {"base_url": upstream.url}}, keys=keys) as gateway:
        for members, headers in (
            ({}, {"x_headway_class": "interactive"}),
            ({}, {"x_priority": "high"}),
            ({"priority": -100}, {}),
            ({"service_tier": "priority"}, {}),
        ):
            got = gateway.post(
                "/v1/chat/completions",
                {**body, **members},
                authorization="Bearer sk-offline-key-1",
                **headers,
            )
            assert got.headers["x-headway-class"] == "elastic"
            reason = got.headers["x-headway-class-reason"]
            assert reason.endswith("+ceiling")
            intent = gateway.records.last.intent
            assert (intent.lane, intent.reason) == (Lane.ELASTIC, reason)
        assert got.json()["service_tier"] == "flex"
        assert not [seen for seen in upstream.calls() if "priority" in seen.json]


def test_cls_04_class_reaches_the_engine(
    upstream: ScriptedUpstream, upstream2: ScriptedUpstream
) -> None:
    """CLS-04: an engine with priorities gets a lower number for interactive; others get none."""
    targets: dict[str, dict[str, object]] = {
        "ranked": {"kind": "vllm", "priority": True, "base_url": upstream.url, "models": ["a"]},
        "plain": {"kind": "vllm", "base_url": upstream2.url, "models": ["b"]},
    }
    messages = [{"role": "user", "content": "x"}]
    with running_gateway(targets) as gateway:
        for model in ("a", "b"):
            for lane in ("interactive", "elastic"):
                sent = {"model": model, "messages": messages, "priority": 7}
                assert (
                    gateway.post("/v1/chat/completions", sent, x_headway_class=lane).status_code
                    == 200
                )
        interactive, elastic = (seen.json["priority"] for seen in upstream.calls())
        assert interactive < elastic
        assert not [seen for seen in upstream2.calls() if "priority" in seen.json]
