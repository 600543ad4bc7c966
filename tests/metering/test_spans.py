"""Records become spans."""

from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from gateway.core.usage import Usage
from gateway.metering.record import CallRecord
from gateway.metering.spans import SpanObserver
from gateway.telemetry.traces import Tracer
from tests.support.calls import an_intent, an_outcome


def test_a_record_becomes_a_span() -> None:
    """Its name is operation and model; tokens and status are attributes, the tenant is none."""
    kept = InMemorySpanExporter()
    tracer = Tracer(SimpleSpanProcessor(kept), 1.0)
    SpanObserver(tracer).observe(CallRecord(an_intent(), an_outcome(Usage(10, 40))))
    (span,) = kept.get_finished_spans()
    told = dict(span.attributes or {})
    assert span.name == "chat/completions m1"
    assert told["gen_ai.usage.output_tokens"] == 40
    assert told["headway.status"] == "ok"
    assert "t1" not in told.values()
    tracer.close()
