"""Faults on purpose."""

import pytest

from gateway.worker.injected import fail_on_purpose
from gateway.worker.options import Faults
from gateway.worker.sampling import SamplingParams
from gateway.worker.scheduler import StepPlan
from gateway.worker.sequence import Sequence


def _plan(rows: int) -> StepPlan:
    sequences = [Sequence([1, 2], 5, SamplingParams(), None, print) for _ in range(rows)]
    for arrival, sequence in enumerate(sequences, 1):
        sequence.arrival = arrival
    return StepPlan(tuple(sequences), ())


def test_the_row_that_was_named_is_poisoned() -> None:
    """That one alone; none when no fault is asked for."""
    plan = _plan(3)
    fail_on_purpose(plan, Faults())
    assert not any(row.poisoned for row in plan.members)
    fail_on_purpose(plan, Faults(nan_row=2))
    assert [row.poisoned for row in plan.members] == [False, True, False]


@pytest.mark.parametrize("faults", [Faults(oom_rows=2), Faults(oom_tokens=5)])
def test_too_large_a_plan_fails(faults: Faults) -> None:
    """By rows or by tokens; a smaller one does not."""
    fail_on_purpose(_plan(2), faults)
    with pytest.raises(MemoryError):
        fail_on_purpose(_plan(3), faults)
