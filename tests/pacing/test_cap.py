"""The cap that finds its size."""

import random

import pytest

from gateway.bench.coserve.arms import Arm, Scene, run_arm
from gateway.bench.coserve.trials import swing
from gateway.pacing.cap import RowCap
from gateway.pacing.shared import Caps
from gateway.simulator.profile import PROFILES

TARGET = 0.05
FLIGHT = 10.0


class _Cap:
    """A cap whose rows are all in flight, and whose flights last ten seconds."""

    def __init__(self, start: int, floor: int = 4, ceiling: int = 512) -> None:
        self.cap = RowCap(start, floor, ceiling, TARGET, 0.0)
        self.now = 0.0
        for _ in range(50):
            self.cap.ended(FLIGHT)

    def hear(self, *gaps: float, seconds: float = 1.0, running: int | None = None) -> float:
        """Gaps so many seconds apart; the cap after them."""
        for gap in gaps:
            self.now += seconds
            if running is None:
                self.cap.used_up()
            rows = int(self.cap.rows) if running is None else running
            self.cap.gap(gap, rows, self.now)
        return self.cap.rows

    def flights(self, count: int, gap_of_a_row: float) -> list[float]:
        """Flights in which gaps are in proportion to rows; the cap after each."""
        seconds = range(int(FLIGHT) * count)
        return [self.hear(gap_of_a_row * self.cap.rows) for _ in seconds][9::10]


@pytest.mark.parametrize("start", [4, 256])
def test_it_finds_its_size_from_any_start(start: int) -> None:
    """With gaps of 1 ms a row a target of 50 ms is met just under 50 rows, in a minute."""
    seen = _Cap(start).flights(30, 0.001)
    assert all(42 <= rows <= 50 for rows in seen[6:])


def test_noise_hardly_moves_it() -> None:
    """Gaps that spread by an eighth leave a cap that was found within a tenth."""
    drawn, found = random.Random(7), _Cap(48)
    found.flights(5, 0.001)
    seen = []
    for _ in range(400):
        gap = 0.001 * found.cap.rows * drawn.gauss(1, 0.125)
        seen.append(found.hear(gap))
    mean = sum(seen) / len(seen)
    assert max(abs(rows - mean) for rows in seen) < 0.1 * mean


@pytest.mark.parametrize("seed", [1, 2])
def test_a_steady_engine_has_a_steady_cap(seed: int) -> None:
    """Under even load the rows in flight stay within a fifth of their mean."""
    scene = Scene(PROFILES["a100-8b"], engines=1, rate=2.5, seconds=300)
    record = run_arm(Arm("Headway", caps=Caps(start=4)), scene, seed)
    assert swing(record, 80) <= 0.2


def test_half_the_speed_is_heard_at_once() -> None:
    """Two gaps far over the target in a row cut to half; two more after half a flight again."""
    found = _Cap(48)
    before = found.flights(5, 0.001)[-1]
    assert found.hear(0.095) == before
    assert found.hear(0.095) == pytest.approx(before / 2, rel=0.02)
    assert found.hear(*[0.095] * 4) == pytest.approx(before / 2, rel=0.02)
    assert found.hear(0.095) == pytest.approx(before / 4, rel=0.02)


def test_one_gap_far_off_is_not() -> None:
    """It may be a hiccup."""
    found = _Cap(48)
    found.flights(5, 0.001)
    before = found.cap.rows
    assert found.hear(0.3, 0.04, 0.3, 0.04) == before


def test_it_grows_by_half_a_flight_when_there_is_much_room() -> None:
    """After it was found; before, it doubles. Where there is little room, by a part of that."""
    fresh = _Cap(8)
    assert fresh.hear(*[0.01] * 10) == 16
    found = _Cap(48)
    before = found.flights(5, 0.001)[-1]
    assert found.hear(*[0.01] * 10) == pytest.approx(1.5 * before)
    near = _Cap(48)
    before = near.flights(5, 0.001)[-1]
    assert before < near.hear(*[0.04] * 10) < 1.13 * before


def test_a_cap_that_is_not_used_up_does_not_grow() -> None:
    """Good gaps with few rows say nothing about more rows."""
    assert _Cap(32).hear(*[0.001] * 30, running=5) == 32


def test_the_first_cut_is_from_the_rows_that_run() -> None:
    """A cap that was never reached is no place to start from; later ones are from the cap."""
    found = _Cap(256)
    assert found.hear(*[0.052] * 10, running=60) == pytest.approx(60 * 0.95 / 1.04)
    assert found.hear(*[0.052] * 10, running=20) > 50


def test_floor_and_ceiling_hold() -> None:
    """A floor keeps deadlines possible."""
    bound = _Cap(16, floor=8, ceiling=20)
    assert bound.hear(*[1.0] * 100) == 8
    assert bound.hear(*[0.001] * 120) == 20
