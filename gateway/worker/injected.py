"""Faults that tests ask for, at the moment a step begins."""

from gateway.worker.options import Faults
from gateway.worker.scheduler import StepPlan


def fail_on_purpose(plan: StepPlan, faults: Faults) -> None:
    """Poison the rows that shall be. Raises MemoryError when the plan is larger than allowed."""
    rows = plan.members
    for row in rows:
        row.poisoned = row.poisoned or row.arrival == faults.nan_row > 0
    too_many = 0 < faults.oom_rows < len(rows)
    if too_many or 0 < faults.oom_tokens < sum(row.length for row in rows):
        raise MemoryError("injected")
