"""One target: places, limits, state."""

import math

import pytest

from gateway.core.rates import RateLimit, RateLimits
from gateway.dispatch.lane import TargetLane
from gateway.dispatch.rate import RateBudget
from tests.support.clock import ManualClock
from tests.support.rows import held_row, lane_of


def _fill(lane: TargetLane, most: int = 100) -> int:
    """Start rows until the lane says no; how many that were."""
    for number in range(most):
        if lane.wait(10):
            return number
        lane.enter(held_row(number), suspect=False)
    return most


def test_places_are_the_window() -> None:
    """A full lane waits for a row to end."""
    lane = lane_of(ManualClock(), window=3)
    assert _fill(lane) == 3
    assert lane.wait(10) == math.inf
    lane.leave(next(iter(lane.running)))
    assert lane.wait(10) == 0


def test_a_provider_gets_few_rows_until_it_takes_them() -> None:
    """Each row that is taken lets another one in, and whoever waits is told."""
    lane = lane_of(ManualClock(), window=64, start=2)
    told: list[int] = []
    lane.users.append(lambda: told.append(1))
    assert _fill(lane) == 2
    next(iter(lane.running.values())).head(None)
    assert told == [1]
    assert _fill(lane) == 1


def test_suspects_and_others_do_not_mix() -> None:
    """A row that crashed before waits until the others are gone, and they wait for it."""
    lane = lane_of(ManualClock())
    lane.enter(row := held_row(1), suspect=False)
    assert lane.wait(10, suspect=True) == math.inf
    lane.leave(row)
    lane.enter(held_row(2, crashes=1), suspect=True)
    assert lane.wait(10) == math.inf
    assert lane.wait(10, suspect=True) == 0


def test_the_credential_with_a_place_is_used() -> None:
    """The first one has used up its limit, so the second one is taken."""
    clock = ManualClock()
    lane = lane_of(clock, budgets=[RateBudget(60, requests=1), RateBudget(60, requests=5)])
    keys = [lane.enter(held_row(number), suspect=False).key for number in range(2)]
    assert keys == [0, 1]


def test_a_throttle_with_a_time_speaks_for_the_target() -> None:
    """Nothing starts until then."""
    lane = lane_of(ManualClock())
    visit = lane.enter(held_row(), suspect=False)
    assert lane.throttled(visit, 5.0, None)
    lane.leave(visit.row)
    assert lane.wait(10) == pytest.approx(5)


def test_a_throttle_without_a_time_takes_two_rows() -> None:
    """One row may be refused for itself; when two are, it is the target."""
    lane = lane_of(ManualClock())
    first, second = (lane.enter(held_row(number), suspect=False) for number in range(2))
    assert not lane.throttled(first, None, None)
    assert not lane.throttled(first, None, None)
    assert lane.throttled(second, None, None)


def test_an_exhausted_limit_is_a_time() -> None:
    """The provider says that nothing is left and when there is more."""
    lane = lane_of(ManualClock())
    visit = lane.enter(held_row(), suspect=False)
    assert lane.throttled(visit, None, RateLimits(RateLimit(60, 0, 4.0)))
    lane.leave(visit.row)
    assert 3.9 < lane.wait(10) < 10


def test_a_throttle_bounds_what_runs_at_once() -> None:
    """Four fifths of those that ran, then one more for each round of answers."""
    clock = ManualClock()
    lane = lane_of(clock, window=64)
    visits = [lane.enter(held_row(number), suspect=False) for number in range(10)]
    lane.leave(visits[9].row)
    lane.throttled(visits[9], 0.0, None)
    assert lane.window() == 8
    for visit in visits[:8]:
        visit.head(None)
    assert lane.window() in {8, 9}


def test_a_credential_that_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    """With another one the row goes on; without, the lane is as good as closed. It is told once."""
    lane = lane_of(ManualClock(), budgets=[RateBudget(60), RateBudget(60)])
    visit = lane.enter(held_row(), suspect=False)
    assert lane.reject(visit)
    other = lane.enter(held_row(1), suspect=False)
    assert other.key == 1
    assert not lane.reject(other)
    assert not lane.reject(other)
    assert lane.rejected
    assert [text.count("refuses key") for text in caplog.messages] == [1, 1]
    other.head(None)
    assert not lane.rejected


def test_a_target_that_refuses_for_long_is_hopeless() -> None:
    """Thirty times over a minute nothing was taken: then a refusal is a try."""
    clock = ManualClock()
    lane = lane_of(clock)
    for _ in range(31):
        assert not lane.hopeless
        visit = lane.enter(held_row(), suspect=False)
        lane.throttled(visit, 3.0, None)
        lane.leave(visit.row)
        clock.advance(3.0)
    assert lane.hopeless


def test_rows_worth_holding() -> None:
    """The window, unless the limit lets only few start soon, or the target is away."""
    clock = ManualClock()
    assert lane_of(clock, window=64).window() == 64
    assert lane_of(clock, window=64, budgets=[RateBudget(60, requests=60)]).window() == 2
    lane = lane_of(clock, window=64)
    lane.gate.refused()
    assert lane.window() == 1
