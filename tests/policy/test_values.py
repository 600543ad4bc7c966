"""Values of a policy."""

import pytest

from gateway.policy.values import seconds


@pytest.mark.parametrize(
    ("text", "value"), [("250ms", 0.25), ("30s", 30.0), ("2m", 120.0), ("24h", 86400.0), (7, 7)]
)
def test_durations(text: object, value: float) -> None:
    """Numbers are seconds; text has a unit."""
    assert seconds(text) == value
