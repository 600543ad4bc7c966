"""Sampled spans: one per call, made when the call has ended, without any content.

A span is never open while the call runs, so no context is held across a yield of a stream.
"""

from dataclasses import dataclass

from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.trace import SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

_NANOSECONDS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class CallSpan:
    """What a span tells about a call. Times are Unix seconds."""

    request_id: str
    operation: str
    lane: str
    model: str
    target: str
    status: str
    started_at: float
    ended_at: float
    prompt_tokens: int
    completion_tokens: int


class Tracer:
    """Sends spans of a share of the calls to ``processor``; the caller's own choice wins."""

    def __init__(self, processor: SpanProcessor, ratio: float) -> None:
        sampler = ParentBased(TraceIdRatioBased(ratio))
        resource = Resource({"service.name": "headway"})
        self._provider = TracerProvider(sampler=sampler, resource=resource)
        self._provider.add_span_processor(processor)
        self._tracer = self._provider.get_tracer("headway")
        self._propagator = TraceContextTextMapPropagator()

    def record(self, call: CallSpan, traceparent: str | None = None) -> None:
        """Make the span of a call that ended. ``traceparent`` is the caller's header."""
        context = Context()
        if traceparent:
            context = self._propagator.extract({"traceparent": traceparent}, context)
        span = self._tracer.start_span(
            f"{call.operation} {call.model}",
            context,
            SpanKind.SERVER,
            start_time=int(call.started_at * _NANOSECONDS),
        )
        if span.is_recording():
            span.set_attributes(
                {
                    "gen_ai.operation.name": call.operation,
                    "gen_ai.request.model": call.model,
                    "gen_ai.usage.input_tokens": call.prompt_tokens,
                    "gen_ai.usage.output_tokens": call.completion_tokens,
                    "headway.request_id": call.request_id,
                    "headway.lane": call.lane,
                    "headway.target": call.target,
                    "headway.status": call.status,
                }
            )
            if call.status != "ok":
                span.set_status(Status(StatusCode.ERROR))
        span.end(int(call.ended_at * _NANOSECONDS))

    def close(self) -> None:
        """Send what waits."""
        self._provider.shutdown()
