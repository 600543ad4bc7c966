"""Metrics and traces to a collector."""

from gateway.telemetry.metrics import Metrics
from gateway.telemetry.otlp import Collector
from gateway.telemetry.traces import CallSpan
from tests.support.collector import collector

CALL = CallSpan("req_1", "chat/completions", "interactive", "m1", "up1", "ok", 1.0, 2.0, 10, 40)


def test_both_reach_the_collector() -> None:
    """At the latest when it is closed; names and figures only."""
    metrics = Metrics(["m1"])
    metrics.requests.add(("interactive", "up1", "m1", "ok"))
    with collector() as found:
        sender = Collector(found.url, metrics, 1.0)
        sender.tracer.record(CALL)
        sender.close()
    assert b"chat/completions m1" in found.bodies["/v1/traces"][0]
    assert b"headway_requests" in b"".join(found.bodies["/v1/metrics"])
