"""The rate of a shard."""

from gateway.dispatch.speed import Speed
from tests.support.clock import ManualClock


def test_the_rate_is_what_was_delivered_lately() -> None:
    """Unknown at first; then tokens per second of work; a new pace shows within a minute."""
    clock = ManualClock()
    speed = Speed(clock)
    assert speed.rate("m.0") == 0
    for _ in range(40):
        clock.advance(0.5)
        speed.note("m.0", 50)
    assert round(speed.rate("m.0")) == 100
    for _ in range(120):
        clock.advance(0.5)
        speed.note("m.0", 500)
    assert 800 < speed.rate("m.0") < 1000
    assert speed.rate("other.0") == 0


def test_idle_time_is_not_work() -> None:
    """An hour without rows leaves the rate as it was."""
    clock = ManualClock()
    speed = Speed(clock)
    for _ in range(40):
        clock.advance(0.5)
        speed.note("m.0", 50)
    clock.advance(3600)
    for _ in range(40):
        speed.note("m.0", 50)
        clock.advance(0.5)
    assert 80 < speed.rate("m.0") < 120
