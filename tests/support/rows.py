"""Held rows and lanes of the dispatcher, made by hand."""

from collections.abc import Sequence

from gateway.batches.rows import BatchRow
from gateway.core.clock import Clock
from gateway.core.work import LeasedRow, LeasedRun, RowFailure, TryKind
from gateway.dispatch.gate import Gate
from gateway.dispatch.held import HeldLease, HeldRow
from gateway.dispatch.lane import TargetLane
from gateway.dispatch.rate import RateBudget
from gateway.dispatch.run import Failed
from gateway.dispatch.witness import Sign
from gateway.pacing.window import FixedWindow

LEASE = HeldLease("1", "m.0", 1000, 1e12)
OTHER = HeldLease("2", "m.0", 1000, 1e12)


def held_row(
    index: int = 0, *, lease: HeldLease = LEASE, errors: int = 0, crashes: int = 0
) -> HeldRow:
    """A row of segment ``batch_1.0``."""
    row = LeasedRow(index, errors, crashes)
    run = LeasedRun("batch_1.0", "batch_1", "t", "m", "/v1/chat/completions", "i", "x", 0, (row,))
    return HeldRow(lease, run, row, BatchRow(index, f"c{index}", "POST", "/v1/x", b"{}", 10))


def lane_of(
    clock: Clock,
    name: str = "up",
    *,
    window: int = 4,
    budgets: Sequence[RateBudget] | None = None,
    start: float = float("inf"),
) -> TargetLane:
    """A lane whose gate has a patience of a minute."""
    gate = Gate(clock, base=0.1, patience=60.0)
    given = [RateBudget(60)] if budgets is None else budgets
    return TargetLane(name, FixedWindow(window), gate, given, clock, start=start)


def failed_row(sign: Sign, *, told: float | None = None, kind: TryKind = TryKind.ERROR) -> Failed:
    """A result that is none."""
    return Failed(RowFailure(0, kind, "upstream_failed"), b"{}\n", sign, told)
