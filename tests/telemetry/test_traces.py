"""Spans of calls that ended."""

from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from gateway.telemetry.traces import CallSpan, Tracer

CALL = CallSpan("req_1", "chat", "interactive", "m1", "up1", "ok", 1000.0, 1001.5, 10, 40)
TRACE = "0af7651916cd43dd8448eb211c80319c"


def test_a_span_tells_figures_and_names_only() -> None:
    """Start and end are the call's; no attribute holds content, key or tenant."""
    exporter = InMemorySpanExporter()
    tracer = Tracer(SimpleSpanProcessor(exporter), 1.0)
    tracer.record(CALL)
    (span,) = exporter.get_finished_spans()
    assert span.name == "chat m1"
    assert (span.start_time, span.end_time) == (1000 * 10**9, 1001_500_000_000)
    assert dict(span.attributes or {}) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "m1",
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 40,
        "headway.request_id": "req_1",
        "headway.lane": "interactive",
        "headway.target": "up1",
        "headway.status": "ok",
    }
    tracer.close()


def test_the_callers_choice_wins() -> None:
    """A trace the caller samples goes on whatever the ratio, one it does not sample never does."""
    exporter = InMemorySpanExporter()
    tracer = Tracer(SimpleSpanProcessor(exporter), 0.0)
    tracer.record(CALL)
    tracer.record(CALL, f"00-{TRACE}-b7ad6b7169203331-00")
    assert not exporter.get_finished_spans()
    tracer.record(CALL, f"00-{TRACE}-b7ad6b7169203331-01")
    (span,) = exporter.get_finished_spans()
    assert span.context is not None
    assert f"{span.context.trace_id:032x}" == TRACE
    tracer.close()


def test_a_header_that_is_none_begins_a_new_trace() -> None:
    """Nonsense from a caller is no error."""
    exporter = InMemorySpanExporter()
    tracer = Tracer(SimpleSpanProcessor(exporter), 1.0)
    tracer.record(CALL, "nonsense")
    assert len(exporter.get_finished_spans()) == 1
    tracer.close()
