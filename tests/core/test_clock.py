"""The machine's clocks."""

from gateway.core.clock import SystemClock


async def test_sleep_takes_at_least_the_time_asked_for() -> None:
    """A sleep is measured on the monotonic clock."""
    clock = SystemClock()
    before = clock.monotonic()
    await clock.sleep(0.01)
    assert clock.monotonic() - before >= 0.009


def test_now_is_unix_time() -> None:
    """The wall clock is past the day this was written."""
    assert SystemClock().now() > 1_790_000_000
