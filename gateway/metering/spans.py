"""From records to spans. Loaded where a collector is configured, for its libraries are large."""

from gateway.metering.record import CallRecord
from gateway.telemetry.traces import CallSpan, Tracer


class SpanObserver:
    """Makes the span of each record with ``tracer``; hand ``observe`` to the ledger."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    def observe(self, record: CallRecord) -> None:
        """Make the span of one call."""
        intent, outcome = record.intent, record.outcome
        call = CallSpan(
            intent.id,
            intent.endpoint.rpartition("/v1/")[2],
            intent.lane.value,
            intent.model,
            outcome.target or "",
            outcome.status.value,
            intent.started_at,
            outcome.ended_at,
            outcome.usage.prompt,
            outcome.usage.completion,
        )
        self._tracer.record(call, intent.traceparent)
