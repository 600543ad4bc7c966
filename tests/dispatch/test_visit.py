"""What a row at a target tells."""

from typing import Any

import pytest

from gateway.core.usage import Usage
from tests.support.clock import ManualClock
from tests.support.rows import held_row, lane_of


def test_the_gap_of_a_row() -> None:
    """From its first piece to its end, over the pieces that followed; the pacer gets it."""
    clock = ManualClock()
    lane = lane_of(clock)
    told: list[Any] = []
    lane.pacer.ended = lambda seconds, gap: told.append((seconds, gap))  # type: ignore[method-assign]
    for pieces in (4, 0):
        row = held_row(pieces)
        visit = lane.enter(row, suspect=False)
        clock.advance(3.0)
        visit.first_token()
        for _ in range(pieces):
            clock.advance(0.5)
            visit.token()
        lane.ended(visit, Usage(10, pieces + 1))
        row.ended = True
        lane.leave(row)
    assert told == [(pytest.approx(5.0), pytest.approx(0.5)), (pytest.approx(3.0), None)]


def test_a_row_that_did_not_end_tells_nothing() -> None:
    """It was taken back, or failed."""
    clock = ManualClock()
    lane = lane_of(clock)
    lane.pacer.ended = lambda seconds, gap: pytest.fail("told")  # type: ignore[method-assign]
    visit = lane.enter(row := held_row(), suspect=False)
    visit.first_token()
    visit.token()
    assert visit.gap is None
    lane.leave(row)
