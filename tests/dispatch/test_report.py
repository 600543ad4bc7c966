"""A dispatcher's view of its targets."""

from gateway.core.price import Price
from gateway.core.usage import Usage
from gateway.dispatch.purse import CostCap, Purse
from gateway.dispatch.report import dispatcher_report
from gateway.pacing.advice import EngineFlags
from gateway.pacing.watch import EngineWatch
from tests.support.clock import ManualClock
from tests.support.rows import held_row, lane_of


def test_rows_caps_and_what_it_may_cost() -> None:
    """Without an engine to watch or a cap on cost neither is told."""
    clock = ManualClock()
    plain, dear = lane_of(clock), lane_of(clock, "dear", window=9)
    plain.enter(held_row(), suspect=False)
    dear.purse = Purse(CostCap(Price(1, 1, 1), 20.0, 3600))
    dear.purse.grant(1.0, 2.5)
    dear.admits = lambda: False
    assert dispatcher_report({"plain": plain, "dear": dear}) == {
        "plain": {
            "rows": 1,
            "prefilling": 1,
            "works": True,
            "admits": True,
            "caps": {"rows": 4, "ours": 4, "prompts": None, "ttft": None, "gap": None},
        },
        "dear": {
            "rows": 0,
            "prefilling": 0,
            "works": True,
            "admits": False,
            "caps": {"rows": 9, "ours": 9, "prompts": None, "ttft": None, "gap": None},
            "late_cost": {"held": 2.5, "max_cost": 20.0, "window_s": 3600, "exhausted": False},
        },
    }


def test_tokens_of_rows_teach_the_step_time() -> None:
    """From the first token to the end of each, through the lane."""
    clock = ManualClock()
    lane = lane_of(clock)
    lane.watch = EngineWatch(EngineFlags(256, 2048), 0.04, lambda: 0.0, clock)
    assert dispatcher_report({"up": lane})["up"]["engine"] is None
    for _ in range(3):
        row = held_row()
        visit = lane.enter(row, suspect=False)
        visit.first_token()
        for _ in range(1000):
            clock.advance(0.02)
            visit.token()
        lane.ended(visit, Usage(10, 1001))
        lane.leave(row)
        visit.token()
    engine = dispatcher_report({"up": lane})["up"]["engine"]
    assert engine["samples"] >= 20
    assert sum(engine["step_ms"].values()) > 0
    assert engine["itl_target_ms"] == 40
