"""What a caller is promised, in seconds or against the calls alone."""

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.bench.coserve.record import CallRecord
from gateway.bench.timing import percentile


@dataclass(frozen=True, slots=True)
class Slo:
    """A first token within ``ttft``, and a mean gap of at most ``itl``."""

    ttft: float = 0.5
    itl: float = 0.05

    @classmethod
    def of_alone(cls, calls: Sequence[CallRecord], times: float) -> "Slo":
        """So many times the 95th percentiles of calls that had the engines to themselves."""
        waits = sorted(call.ttft for call in calls)
        gaps = sorted(call.itl for call in calls)
        return cls(times * percentile(waits, 95), times * percentile(gaps, 95))

    def met(self, call: CallRecord) -> bool:
        """Whether it got what is promised; one that failed did not."""
        return call.ttft <= self.ttft and call.itl <= self.itl and not call.failed


#: What is promised on a GPU.
USUAL = Slo()
