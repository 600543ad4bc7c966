"""The word comes as late as it would."""

from gateway.bench.coserve.record import CallRecord
from gateway.bench.coserve.word import EngineLoad, Teller
from gateway.core.load import TargetLoad
from gateway.pacing.shared import Waiting


def test_changes_are_said_at_once_and_then_50_ms_apart() -> None:
    """Without changes each 250 ms."""
    load = EngineLoad()
    teller = Teller([load])
    teller.change()
    assert teller.due() <= 0
    load.calls = 1
    teller.tell(1.0)
    assert load.waiting == Waiting(1, 0)
    assert teller.due() == 1.25
    teller.change()
    assert teller.due() == 1.05


def test_the_lane_hears_before_and_now_and_each_end_once() -> None:
    """Means are over the calls that ended since the last word and had a token."""
    heard: list[tuple[TargetLoad, TargetLoad]] = []
    load = EngineLoad(listener=lambda *loads: heard.append(loads))
    load.calls, load.prefilling = 1, 1
    load.ended += [
        CallRecord(0.0, 5, 3, first=1.0, last=1.5, tokens=3),
        CallRecord(0.0, 5, 1, first=3.0, last=3.0, tokens=1),
        CallRecord(0.0, 5, 1),
    ]
    load.say()
    load.calls, load.prefilling = 0, 0
    load.say()
    first = TargetLoad(1, 1, 2.0, 0.25)
    assert heard == [(TargetLoad(), first), (first, TargetLoad())]
