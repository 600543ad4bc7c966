"""Routes of a model."""

import pytest

from gateway.core.errors import ModelNotFound
from gateway.core.lanes import Lane
from gateway.policy.model import Policy
from gateway.routing.router import Router

POLICY = Policy.model_validate(
    {
        "targets": {
            "one": {
                "base_url": "http://x/v1",
                "models": {"m": "their-m"},
                "lanes": {"batch": {"max_in_flight": 0}},
            },
            "two": {"base_url": "http://y/v1", "models": ["m", "n"], "kind": "vllm"},
        }
    }
)


def test_order_of_the_file() -> None:
    """Targets come in the file's order, each with its own name of the model."""
    routes = Router(POLICY).plan("m", Lane.INTERACTIVE)
    assert [(r.target, r.served_model) for r in routes] == [("one", "their-m"), ("two", "m")]
    assert Router(POLICY).models == ("m", "n")


def test_targets_in_trouble() -> None:
    """Those that are not as they should be, until they are again."""
    router = Router(POLICY)
    router.states["two"].probed(healthy=False)
    assert list(router.troubles()) == ["two"]
    router.states["two"].probed(healthy=True)
    assert router.troubles() == {}


def test_a_lane_of_zero_is_not_served() -> None:
    """A target without places for a lane gets none of its calls."""
    assert [r.target for r in Router(POLICY).plan("m", Lane.BATCH)] == ["two"]


def test_unknown_model() -> None:
    """The message repeats the asked name, cut short, and no other."""
    with pytest.raises(ModelNotFound) as caught:
        Router(POLICY).plan("x" * 5000, Lane.INTERACTIVE)
    assert len(caught.value.message) < 400
    assert "their-m" not in caught.value.message


def test_aliases_are_models() -> None:
    """They are listed, and batch rows find their target's own name under them."""
    policy = {**POLICY.model_dump(), "models": {"m": {"aliases": ["gpt"]}}}
    router = Router(Policy.model_validate(policy))
    assert router.models == ("m", "n", "gpt")
    assert router.route("two", "gpt").served_model == "m"
