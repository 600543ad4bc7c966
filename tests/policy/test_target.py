"""A target's entry in the policy."""

import pytest
from pydantic import ValidationError

from gateway.policy.target import TargetPolicy

GOOD = {"base_url": "http://a/v1", "models": ["m"]}


@pytest.mark.parametrize(
    "members",
    [
        {"weight": 0},
        {"context": 0},
        {"health": "health"},
        {"retry": {"budget": 1.5}},
        {"breaker": {"failures": 0}},
        {"breaker": {"share": 0}},
        {"breaker": "of"},
        {"lanes": {"interactive": {"spill": "sometimes"}}},
    ],
)
def test_what_cannot_be_is_refused(members: dict[str, object]) -> None:
    """Weights and contexts are positive, a health path begins with a slash, shares end at 1."""
    with pytest.raises(ValidationError):
        TargetPolicy.model_validate({**GOOD, **members})


@pytest.mark.parametrize("word", ["off", False])
def test_the_breaker_may_be_switched_off(word: object) -> None:
    """``off`` is a word in YAML, too, which means false."""
    assert TargetPolicy.model_validate({**GOOD, "breaker": word}).breaker.off
    assert not TargetPolicy.model_validate(GOOD).breaker.off


def test_a_target_stands_alone_unless_weighed() -> None:
    """Without a weight it is tried in the file's order."""
    assert TargetPolicy.model_validate(GOOD).weight is None
    assert TargetPolicy.model_validate({**GOOD, "weight": 3}).weight == 3
