"""The demo's figures as one value."""

from tests.support.measured import good


def test_the_price_of_batch_size_1() -> None:
    """The batch's output tokens at the speed of one call at a time."""
    measured = good()
    assert measured.single_seconds == measured.batch.usage.completion / measured.single_speed
