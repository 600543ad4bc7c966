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
        {"lanes": {"interactive": {"spill": "sometimes"}}},
    ],
)
def test_what_cannot_be_is_refused(members: dict[str, object]) -> None:
    """Weights and contexts are positive, a health path begins with a slash, shares end at 1."""
    with pytest.raises(ValidationError):
        TargetPolicy.model_validate({**GOOD, **members})


def test_a_target_stands_alone_unless_weighed() -> None:
    """Without a weight it is tried in the file's order."""
    assert TargetPolicy.model_validate(GOOD).weight is None
    assert TargetPolicy.model_validate({**GOOD, "weight": 3}).weight == 3
