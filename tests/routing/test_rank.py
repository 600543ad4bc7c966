"""The rank of a lane as each kind of engine wants it."""

from typing import Any

import pytest

from gateway.core.lanes import Lane
from gateway.policy.target import TargetPolicy
from gateway.routing.rank import rank_head, rank_members, with_rank
from tests.support.routes import a_target


def _target(**members: Any) -> TargetPolicy:
    return TargetPolicy.model_validate(a_target(**members))


@pytest.mark.parametrize(
    ("priority", "interactive", "batch"),
    [
        (True, {"priority": 0}, {"priority": 100}),
        ("lower", {"priority": 0}, {"priority": 100}),
        ("higher", {"priority": 100}, {"priority": 0}),
        (
            "dynamo",
            {"nvext": {"agent_hints": {"priority": 100}}},
            {"nvext": {"agent_hints": {"priority": 0}}},
        ),
        (False, {}, {}),
        (None, {}, {}),
    ],
)
def test_each_scale(priority: object, interactive: object, batch: object) -> None:
    """Interactive comes first on every scale; unknown kinds get nothing."""
    target = _target(priority=priority)
    assert rank_members(target, Lane.INTERACTIVE) == interactive
    assert rank_members(target, Lane.BATCH) == batch


def test_our_own_worker_knows_it() -> None:
    """Without a word in the policy."""
    assert rank_members(_target(kind="local"), Lane.ELASTIC) == {"priority": 10}


def test_an_objective_is_named_in_a_header() -> None:
    """For the lanes that have one."""
    target = _target(objectives={"interactive": "chat", "batch": "night"})
    assert rank_head(target, Lane.BATCH) == b"x-gateway-inference-objective: night\r\n"
    assert rank_head(target, Lane.ELASTIC) == b""


@pytest.mark.parametrize("name", ["two words", "a\r\nb", "", "Ä"])
def test_an_objective_has_a_name_of_kubernetes(name: str) -> None:
    """What could be two header lines is refused when the policy is read."""
    with pytest.raises(ValueError, match="objectives"):
        _target(objectives={"batch": name})


def test_a_clients_other_hints_stay() -> None:
    """Its own rank is replaced, what it sent is not changed."""
    sent = {"nvext": {"agent_hints": {"priority": 7, "osl": 5}, "x": 1}}
    body: dict[str, Any] = dict(sent)
    with_rank(body, rank_members(_target(priority="dynamo"), Lane.BATCH))
    assert body == {"nvext": {"agent_hints": {"priority": 0, "osl": 5}, "x": 1}}
    assert sent["nvext"]["agent_hints"] == {"priority": 7, "osl": 5}
