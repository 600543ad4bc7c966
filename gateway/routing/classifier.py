"""Which lane a call belongs to, and by which rule. Explicit hints first, then the policy."""

import fnmatch
import re
from collections.abc import Callable, Mapping
from typing import Any

from gateway.core.errors import InvalidRequest
from gateway.core.lanes import Lane
from gateway.core.values import value
from gateway.policy.model import ClassifyPolicy, ClassifyRule

#: Header by which a caller asks for a class, and its alias. A value that is no class is refused.
_OWN_HEADERS = (b"x-headway-class", b"x-workload-class")
#: Headers of other gateways. Values that say nothing about the class are ignored.
_ALIASES: dict[bytes, dict[bytes, Lane]] = {
    b"x-smg-priority": {
        b"system": Lane.INTERACTIVE,
        b"interactive": Lane.INTERACTIVE,
        b"bulk": Lane.ELASTIC,
    },
    b"x-gateway-inference-objective": {
        b"interactive": Lane.INTERACTIVE,
        b"batch": Lane.ELASTIC,
    },
}
_CLASSES = {
    b"interactive": Lane.INTERACTIVE,
    b"elastic": Lane.ELASTIC,
    b"batch": Lane.BATCH,
}
_TIERS = {"flex": Lane.ELASTIC, "priority": Lane.INTERACTIVE, "fast": Lane.INTERACTIVE}
_WORKLOADS = {
    "interactive": Lane.INTERACTIVE,
    "elastic": Lane.ELASTIC,
    "batch": Lane.ELASTIC,
    "offline": Lane.ELASTIC,
}
_CLASS_HEADERS = frozenset({*_OWN_HEADERS, *_ALIASES})
_PATIENCE = b"x-stainless-read-timeout"


@value
class CallFacts:
    """What the rules look at. ``headers`` have lower-case names, ``items`` counts prompts."""

    endpoint: str
    model: str
    headers: Mapping[bytes, bytes]
    members: Mapping[str, Any]
    items: int
    key_id: str
    tenant: str


@value
class Decision:
    """The lane and the rule that chose it; ``+ceiling`` says that the key may not go faster."""

    lane: Lane
    reason: str


_Hint = Decision | None
_USER = Decision(Lane.INTERACTIVE, "user")
_STREAM = Decision(Lane.INTERACTIVE, "stream")


class Classifier:
    """Classifies synchronous calls by one policy.

    A synchronous call is never made asynchronous: one that belongs to ``batch`` is ``elastic``.
    """

    def __init__(self, policy: ClassifyPolicy) -> None:
        self._policy = policy
        self._default = Decision(policy.default, "default")
        self._rules = [(name, rule, _agent(rule)) for name, rule in policy.rules.items()]
        self._steps: tuple[Callable[[CallFacts], _Hint], ...] = (
            _by_header,
            _by_tier,
            self._by_rule,
            self._by_patience,
            self._by_array,
            _by_person,
        )

    def classify(self, facts: CallFacts, ceiling: Lane) -> Decision:
        """The lane of a call: first match wins, then the key's ceiling.

        Raises InvalidRequest for a class header whose value is no class.
        """
        for step in self._steps:
            decision = step(facts)
            if decision is not None:
                break
        else:
            decision = self._default
        wanted = _synchronous(decision.lane)
        lane = _synchronous(wanted.clamped(ceiling))
        if lane is decision.lane:
            return decision
        if lane is wanted:
            return Decision(lane, decision.reason)
        return Decision(lane, f"{decision.reason}+ceiling")

    def _by_rule(self, facts: CallFacts) -> _Hint:
        for name, rule, agent in self._rules:
            if _matches(rule, facts) and (
                agent is None or agent.match(facts.headers.get(b"user-agent", b""))
            ):
                return Decision(rule.lane, f"policy:{name}")
        return None

    def _by_patience(self, facts: CallFacts) -> _Hint:
        metadata = facts.members.get("metadata")
        if isinstance(metadata, dict):
            workload = metadata.get("workload")
            lane = _WORKLOADS.get(workload) if isinstance(workload, str) else None
            if lane is not None:
                return Decision(lane, "metadata")
        told = facts.headers.get(_PATIENCE)
        if told is None:
            return None
        try:
            patient = float(told) >= self._policy.patient_over
        except ValueError:
            return None
        return Decision(Lane.ELASTIC, "read_timeout") if patient else None

    def _by_array(self, facts: CallFacts) -> _Hint:
        if facts.items > self._policy.array_offline_over:
            return Decision(Lane.ELASTIC, "array")
        return None


def _by_header(facts: CallFacts) -> _Hint:
    if _CLASS_HEADERS.isdisjoint(facts.headers):
        return None
    for name in _OWN_HEADERS:
        value = facts.headers.get(name)
        if value is not None:
            lane = _CLASSES.get(value.strip().lower())
            if lane is None:
                raise InvalidRequest(
                    f"{name.decode()} must be interactive, elastic or batch.", code="invalid_value"
                )
            return Decision(lane, "header")
    for name, values in _ALIASES.items():
        lane = values.get(facts.headers.get(name, b"").strip().lower())
        if lane is not None:
            return Decision(lane, f"header:{name.decode()}")
    return None


def _by_tier(facts: CallFacts) -> _Hint:
    tier = facts.members.get("service_tier")
    lane = _TIERS.get(tier) if isinstance(tier, str) else None
    return None if lane is None else Decision(lane, "service_tier")


def _by_person(facts: CallFacts) -> _Hint:
    if facts.members.get("user") or facts.members.get("safety_identifier"):
        return _USER
    return _STREAM if facts.members.get("stream") else None


def _synchronous(lane: Lane) -> Lane:
    return Lane.ELASTIC if lane is Lane.BATCH else lane


def _agent(rule: ClassifyRule) -> re.Pattern[bytes] | None:
    if rule.user_agent is None:
        return None
    return re.compile(fnmatch.translate(rule.user_agent).encode(), re.IGNORECASE)


def _matches(rule: ClassifyRule, facts: CallFacts) -> bool:
    return (
        (rule.keys is None or facts.key_id in rule.keys)
        and (rule.tenants is None or facts.tenant in rule.tenants)
        and (rule.models is None or facts.model in rule.models)
        and (rule.endpoints is None or facts.endpoint in rule.endpoints)
    )
