"""Advice from what was seen."""

import pytest

from gateway.bench.coserve.arms import Scene
from gateway.bench.coserve.counsel import counsel_of, tried_counsel
from gateway.simulator.profile import PROFILES

H200 = Scene(PROFILES["h200-8b"], engines=1, seconds=90)


def test_the_engine_s_own_figures_are_found_and_the_advice_holds_there() -> None:
    """Fitted from outside, tried in the simulated engine."""
    counsel = tried_counsel(H200, 0.05)
    assert counsel is not None
    assert counsel.step.a == pytest.approx(0.00475, rel=0.05)
    assert counsel.step.d == pytest.approx(0.0000225, rel=0.05)
    assert counsel.tried is not None
    (gap, offline), (gap_then, offline_then) = counsel.tried
    assert gap > 100
    assert gap_then <= 50
    assert 1 - offline_then / offline == pytest.approx(counsel.advice.cost, abs=0.06)
    assert any("--max-num-batched-tokens" in line for line in counsel.lines())
    assert counsel.as_json()["flags"] == counsel.advice.command()


def test_too_few_steps_give_no_advice() -> None:
    """Nothing is made up."""
    assert counsel_of([], H200.profile, H200, 0.05) is None


def test_a_target_out_of_reach_is_said() -> None:
    """In words."""
    counsel = tried_counsel(H200, 0.004)
    assert counsel is not None
    assert any("No flags" in line for line in counsel.lines())
