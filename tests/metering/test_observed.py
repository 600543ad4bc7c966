"""Records become counters."""

from gateway.core.usage import Usage
from gateway.metering.observed import MetricsObserver
from gateway.metering.record import Attempt, CallRecord
from gateway.telemetry.metrics import Metrics
from tests.support.calls import an_intent, an_outcome


def test_a_record_is_counted_once_with_its_attempts() -> None:
    """Calls, tokens, tries and times, without key or tenant."""
    metrics = Metrics(["m1"])
    attempts = (Attempt("up1", None, "timeout"), Attempt("up1", 200))
    MetricsObserver(metrics).observe(
        CallRecord(an_intent(), an_outcome(Usage(10, 40), attempts=attempts))
    )
    text = metrics.text()
    labels = 'lane="interactive",target="up1",model="m1",status="ok"'
    assert f"headway_requests_total{{{labels}}} 1\n" in text
    assert f"headway_completion_tokens_total{{{labels}}} 40\n" in text
    assert f"headway_time_to_first_token_seconds_count{{{labels}}} 1\n" in text
    assert (
        'headway_attempts_total{lane="interactive",target="up1",model="m1",status="timeout"} 1'
        in text
    )
    assert "k1" not in text
    assert "t1" not in text
