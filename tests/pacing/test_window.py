"""The window stays full and little waits locally."""

import pytest

from gateway.pacing.window import FixedWindow, rows_to_lease


def test_a_fixed_window_has_the_places_that_are_free() -> None:
    """Each row that ends makes one place."""
    window = FixedWindow(4)
    assert [window.places(running, 0) for running in (0, 3, 4, 9)] == [4, 1, 0, 0]


@pytest.mark.parametrize(
    ("window", "held", "rows"),
    [(64, 0, 80), (64, 60, 20), (64, 70, 10), (64, 72, 0), (64, 80, 0), (1, 0, 1), (1, 1, 0)],
)
def test_a_quarter_of_the_window_is_kept_ready(window: int, held: int, rows: int) -> None:
    """A trip to the queue is made for free places, or when half of the reserve is used."""
    assert rows_to_lease(window, held) == rows
