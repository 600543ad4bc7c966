"""The word comes as late as it would."""

from gateway.bench.coserve.word import EngineLoad, Teller
from gateway.pacing.shared import Waiting


def test_changes_are_said_at_once_and_then_50_ms_apart() -> None:
    """Without changes each 250 ms."""
    load = EngineLoad()
    teller = Teller([load])
    teller.change()
    assert teller.due() <= 0
    load.calls = 1
    teller.tell(1.0)
    assert load.said == Waiting(1, 0)
    assert teller.due() == 1.25
    teller.change()
    assert teller.due() == 1.05


def test_only_arrivals_wake_the_lane_and_gaps_are_told_once() -> None:
    """An end is no arrival."""
    woken: list[int] = []
    gaps: list[float] = []
    load = EngineLoad(on_arrival=lambda: woken.append(1), on_gap=gaps.append)
    load.calls, load.prefilling = 1, 1
    load.gaps += [0.02, 0.04]
    load.say()
    assert (len(woken), gaps) == (1, [0.03])
    load.calls, load.prefilling = 0, 0
    load.say()
    load.say()
    assert (len(woken), gaps) == (1, [0.03])
