"""The target that is kept free for rows that crashed."""

from gateway.dispatch.isolation import Isolation
from tests.support.clock import ManualClock
from tests.support.rows import OTHER, held_row, lane_of


async def test_one_target_is_kept_and_given_back() -> None:
    """The first one; when nobody is left it is everyone's again."""
    clock = ManualClock()
    lanes = [lane_of(clock, "one"), lane_of(clock, "two")]
    isolation = Isolation(lanes)
    row = held_row(crashes=1)
    assert isolation.lane_for(row) is lanes[0]
    assert lanes[0].isolating is isolation
    lanes[0].enter(row, suspect=True)
    isolation.over()
    assert lanes[0].isolating is isolation
    lanes[0].leave(row)
    isolation.over()
    assert lanes[0].isolating is None


async def test_a_target_that_is_down_is_left() -> None:
    """Suspects move to one that works."""
    clock = ManualClock()
    lanes = [lane_of(clock, "one"), lane_of(clock, "two")]
    isolation = Isolation(lanes)
    row = held_row(crashes=1)
    isolation.lane_for(row)
    lanes[0].gate.refused()
    assert isolation.lane_for(row) is lanes[1]
    assert lanes[0].isolating is None


async def test_two_pools_do_not_share_one() -> None:
    """Suspects of other models have to wait or go elsewhere."""
    lane = lane_of(ManualClock())
    first, second = Isolation([lane]), Isolation([lane])
    assert first.lane_for(held_row(crashes=1)) is lane
    assert second.lane_for(held_row(crashes=1)) is None


async def test_only_suspects_of_one_lease_run_together() -> None:
    """The queue counts a crash as alone by the size of the lease."""
    lane = lane_of(ManualClock())
    isolation = Isolation([lane])
    lane.enter(held_row(1, crashes=1), suspect=True)
    assert isolation.beside(held_row(2, crashes=1), lane)
    assert not isolation.beside(held_row(3, crashes=1, lease=OTHER), lane)
