"""Reasons in the words of a policy file."""

import pytest

from gateway.policy.words import duration_reason, reason


@pytest.mark.parametrize(
    ("kind", "context", "said"),
    [
        ("int_parsing", {}, "must be a whole number"),
        ("float_type", {}, "must be a number"),
        ("finite_number", {}, "must be a number with an end"),
        ("greater_than", {"gt": 0.0}, "must be above 0"),
        ("less_than_equal", {"le": 0.5}, "must be at most 0.5"),
        ("literal_error", {"expected": "'a' or 'b'"}, "must be 'a' or 'b'"),
        ("model_type", {}, "must be a mapping of one, two"),
        ("value_error", {}, None),
    ],
)
def test_what_a_value_must_be(kind: str, context: dict[str, object], said: str | None) -> None:
    """Bounds as they would be written; reasons of our own are left as they are."""
    assert reason(kind, context, ["one", "two"]) == said


def test_durations_have_their_bounds() -> None:
    """In the units of a policy."""
    assert duration_reason("less_than_equal", {"le": 10.0}).endswith("and at most 10s")
    assert duration_reason("less_than_equal", {"le": 172_800.0}).endswith("and at most 2d")
    assert duration_reason("greater_than", {"gt": 0.0}).endswith("and above 0")
    assert duration_reason("float_parsing", {}).endswith("and not negative")
