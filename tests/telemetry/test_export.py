"""The same counters through OpenTelemetry."""

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, NumberDataPoint

from gateway.telemetry.export import observe
from gateway.telemetry.metrics import Metrics

OK = ("batch", "up1", "m1", "ok")


def test_a_reader_sees_what_was_counted() -> None:
    """Counters, and count and sum of histograms, with the same labels."""
    metrics = Metrics(["m1"])
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    observe(metrics, provider.get_meter("headway"))
    metrics.completion.add(OK, 40)
    metrics.ttft.add(OK, 0.25)
    metrics.ttft.add(OK, 0.5)
    found = reader.get_metrics_data()
    assert found is not None
    points = {
        metric.name: point
        for resource in found.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
        for point in metric.data.data_points
        if isinstance(point, NumberDataPoint)
    }
    provider.shutdown()
    tokens = points["headway_completion_tokens"]
    assert tokens.value == 40
    assert dict(tokens.attributes or {}) == {
        "lane": "batch",
        "target": "up1",
        "model": "m1",
        "status": "ok",
    }
    assert points["headway_time_to_first_token_seconds_count"].value == 2
    assert points["headway_time_to_first_token_seconds_sum"].value == 0.75
