"""Short rounds of ``make chaos``: nothing lost, nothing twice, the bill right."""

from pathlib import Path

import pytest

from tests.chaos.plan import Fault, RoundPlan, round_plan, short_plan
from tests.chaos.round import Outcome, run_round

_ROWS = 160
#: At most two crashes of a row in each, one less than make it dead: every row must be answered.
_ROUNDS = (
    {Fault.DISPATCHER: 1, Fault.WORKER: 1},
    {Fault.SERVER: 2, Fault.GATEWAY: 1},
    {Fault.FREEZE: 2},
    {Fault.LOST_REPLY: 3, Fault.SLOW: 1, Fault.CUT: 1},
)


def _sound(plan: RoundPlan, folder: Path) -> Outcome:
    outcome = run_round(plan, folder)
    verdict = outcome.verdict
    assert verdict.sound, verdict
    assert verdict.delivered + verdict.given_up + verdict.cancelled == plan.rows
    return outcome


@pytest.mark.timeout(300)
@pytest.mark.parametrize("faults", _ROUNDS, ids=" and ".join)
def test_a_round_of_a_few_faults(tmp_path: Path, faults: dict[Fault, int]) -> None:
    """Every row comes once, although its processes were struck while they held rows."""
    plan = short_plan(faults, _ROWS)
    outcome = _sound(plan, tmp_path)
    assert outcome.strikes.keys() == faults.keys()
    assert outcome.verdict.delivered == plan.rows


@pytest.mark.long
@pytest.mark.parametrize("number", range(4))
def test_a_round_of_everything(tmp_path: Path, number: int) -> None:
    """A full round: all kinds of faults on 2,500 rows, few of which are given up."""
    outcome = _sound(round_plan(1, number, 2500), tmp_path)
    assert outcome.verdict.given_up <= 0.02 * outcome.verdict.rows
