"""Fresh latencies of each target, summed until somebody takes them."""

from dataclasses import dataclass

from gateway.core.lanes import Lane
from gateway.metering.record import CallRecord


@dataclass(slots=True)
class _Sums:
    ttft: float = 0.0
    calls: int = 0
    gap: float = 0.0
    gaps: int = 0


class FreshLatency:
    """Of interactive calls alone; hand ``observe`` to the ledger."""

    def __init__(self) -> None:
        self._sums: dict[str, _Sums] = {}

    def observe(self, record: CallRecord) -> None:
        """Add one call that ended."""
        outcome = record.outcome
        timing = outcome.timing
        if record.intent.lane is not Lane.INTERACTIVE or timing.ttft_s is None:
            return
        sums = self._sums.setdefault(outcome.target or "", _Sums())
        sums.ttft += timing.ttft_s
        sums.calls += 1
        if timing.itl_mean_s is not None:
            sums.gap += timing.itl_mean_s * timing.gaps
            sums.gaps += timing.gaps

    def take(self) -> dict[str, tuple[float, float | None]]:
        """Per target the mean TTFT and ITL in seconds since the last take; ITL None of no gaps."""
        taken, self._sums = self._sums, {}
        return {
            target: (sums.ttft / sums.calls, sums.gap / sums.gaps if sums.gaps else None)
            for target, sums in taken.items()
        }
