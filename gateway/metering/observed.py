"""From records to the counters of the process."""

from gateway.metering.record import CallRecord
from gateway.telemetry.metrics import Metrics


class MetricsObserver:
    """Counts each record in ``metrics``; hand ``observe`` to the ledger."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def observe(self, record: CallRecord) -> None:
        """Count one call."""
        metrics, intent, outcome = self._metrics, record.intent, record.outcome
        model, lane = metrics.model(intent.model), intent.lane.value
        labels = (lane, outcome.target or "", model, outcome.status.value)
        metrics.requests.add(labels)
        metrics.prompt.add(labels, outcome.usage.prompt)
        metrics.completion.add(labels, outcome.usage.completion)
        metrics.duration.add(labels, max(0.0, outcome.ended_at - intent.started_at))
        if outcome.timing.ttft_s is not None:
            metrics.ttft.add(labels, outcome.timing.ttft_s)
        if outcome.timing.itl_mean_s is not None:
            metrics.tpot.add(labels, outcome.timing.itl_mean_s)
        for attempt in outcome.attempts:
            status = str(attempt.status) if attempt.status else attempt.code or "none"
            metrics.attempts.add((lane, attempt.target, model, status))
