"""A target that refuses connections is asked gently."""

import math

import pytest

from gateway.dispatch.gate import Gate
from tests.support.clock import ManualClock


def _gate(patience: float = 60.0) -> tuple[Gate, ManualClock]:
    clock = ManualClock()
    return Gate(clock, base=0.1, patience=patience), clock


def test_an_open_gate_has_no_limit() -> None:
    """Nothing is held back before the first refusal."""
    gate, _ = _gate()
    gate.asking()
    assert gate.places() == math.inf


def test_a_refusal_charges_no_try_and_closes() -> None:
    """A restart of the target costs no row a try."""
    gate, clock = _gate()
    assert not gate.refused()
    assert gate.places() == 0
    clock.advance(gate.wait())
    assert gate.places() == 1


def test_the_target_is_asked_at_growing_intervals() -> None:
    """One row asks again after 0.1 s, then 0.2 s, and so on, however many were refused at once."""
    gate, clock = _gate()
    for _ in range(64):
        gate.refused()
    waits = []
    for _ in range(8):
        waits.append(round(gate.wait(), 3))
        clock.advance(gate.wait())
        assert gate.places() == 1
        gate.asking()
        assert gate.places() == 0
        gate.refused()
    assert waits == [0.1, 0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0]


def test_an_answer_opens_the_gate() -> None:
    """Rows flow again at once."""
    gate, _ = _gate()
    gate.refused()
    gate.answered()
    assert gate.places() == math.inf


def test_a_long_outage_counts() -> None:
    """After the patience is over rows go out and each refusal is a try (BAT-01)."""
    gate, clock = _gate(patience=5.0)
    gate.refused()
    clock.advance(5.0)
    assert gate.places() == math.inf
    assert gate.refused()


def test_a_lost_connection_holds_the_next_row_back_for_a_moment() -> None:
    """What follows a crash at once would be taken for its cause; an answer ends the wait."""
    gate, clock = _gate()
    gate.lost()
    assert gate.places() == 0
    clock.advance(gate.wait())
    assert gate.places() == math.inf
    gate.lost()
    gate.answered()
    assert gate.places() == math.inf


def test_three_rows_that_fail_are_an_outage() -> None:
    """Fewer are charged as the rows' own; from the third on failures are free, until an answer."""
    gate, clock = _gate()
    assert [gate.failed(row) for row in "aab"] == [True] * 3
    assert gate.places() == math.inf
    assert not gate.failed("c")
    assert gate.places() == 0
    assert gate.outages == 1
    clock.advance(60.0)
    assert gate.failed("d")
    gate.answered()
    assert gate.failed("e")


def test_rows_with_another_target_stay_patient() -> None:
    """Past the patience only rows that have nowhere to go storm the target."""
    gate, clock = _gate(patience=5.0)
    gate.refused()
    clock.advance(6.0)
    assert gate.places() == math.inf
    assert gate.places(elsewhere=True) == 1
    gate.asking()
    assert gate.places(elsewhere=True) == 0


def test_after_a_crash_others_are_preferred() -> None:
    """Until it answers, the target gets probes from rows that have another one."""
    gate, _ = _gate()
    gate.crashed()
    assert not gate.healthy
    assert gate.places(elsewhere=True) == 1
    assert gate.places() == math.inf
    gate.answered()
    assert gate.healthy


def test_what_is_lost_in_one_moment_is_lost_together() -> None:
    """However late one of them is judged; what was lost long before is not of it."""
    gate, clock = _gate()
    gate.lost()
    clock.advance(1.0)
    for _ in range(3):
        gate.lost()
        clock.advance(0.01)
    clock.advance(0.25)
    assert gate.lost_of_late() == 3


def test_the_operator_is_told_when_it_changes(caplog: pytest.LogCaptureFixture) -> None:
    """Once when rows no longer flow, once when they do again."""
    caplog.set_level("INFO")
    gate = Gate(ManualClock(), base=0.1, patience=60, name="up")
    for _ in range(3):
        gate.refused()
    for _ in range(3):
        gate.answered()
    assert caplog.messages == [
        "target up fails batch rows: it is asked by one at a time",
        "target up takes batch rows again",
    ]
