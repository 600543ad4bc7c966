"""Hours are UTC."""

from gateway.metering.hours import hour_of, last_hours
from tests.support.calls import HOUR_START


def test_the_hour_of_a_moment() -> None:
    """An hour holds its first moment and not its last."""
    assert hour_of(HOUR_START) == "2026113005"
    assert hour_of(HOUR_START - 0.001) == "2026113004"


def test_the_last_hours_end_with_now() -> None:
    """Oldest first."""
    assert last_hours(HOUR_START, 6) == [f"202611300{hour}" for hour in range(6)]
