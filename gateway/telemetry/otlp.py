"""Metrics and traces to a collector, over OTLP and HTTP. Imported only when one is configured."""

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from gateway.core.ids import new_id
from gateway.telemetry.export import observe
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.traces import Tracer

_SECONDS = 2.0  # a collector that is away must not hold up the end of the process


class Collector:
    """Sends from threads of its own; a collector that is away is logged and delays nothing."""

    def __init__(self, endpoint: str, metrics: Metrics, trace_ratio: float) -> None:
        base = endpoint.rstrip("/")
        spans = BatchSpanProcessor(OTLPSpanExporter(f"{base}/v1/traces", timeout=_SECONDS))
        self.tracer = Tracer(spans, trace_ratio)
        reader = PeriodicExportingMetricReader(
            OTLPMetricExporter(f"{base}/v1/metrics", timeout=_SECONDS)
        )
        # Several processes may send; the sums of each are its own.
        instance = {"service.instance.id": new_id("gateway", 16)}
        resource = Resource({"service.name": "headway", **instance})
        self._meters = MeterProvider([reader], resource)
        observe(metrics, self._meters.get_meter("headway"))

    def close(self) -> None:
        """Send what waits."""
        self.tracer.close()
        self._meters.shutdown()
