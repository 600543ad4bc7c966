"""Spans of time."""

import pytest

from gateway.schemas.durations import duration_seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("30m", 1800),
        ("24h", 86_400),
        ("2d", 172_800),
        ("999999999d", 999999999 * 86400),
    ],
)
def test_a_number_and_a_unit(text: str, seconds: int) -> None:
    """Whole numbers above 0 of seconds, minutes, hours or days."""
    assert duration_seconds(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "5", "0s", "01s", "1.5h", "-1s", "1w", "1 h", "1h ", "9" * 10 + "s"]
)
def test_anything_else_is_none(text: str) -> None:
    """Callers say what they accept."""
    assert duration_seconds(text) is None
