"""What watches the calls of a process."""

import sys

import pytest

from gateway.bootstrap.observers import Observers
from gateway.core.errors import ConfigError
from gateway.core.settings import Settings
from gateway.metering.record import CallRecord, CallStatus
from gateway.policy.model import Policy
from tests.support.calls import an_intent, an_outcome
from tests.support.collector import collector

POLICY = Policy.model_validate(
    {"targets": {"up1": {"base_url": "http://127.0.0.1:9/v1", "models": ["m1"]}}}
)


async def test_every_record_is_counted() -> None:
    """Without a collector there are the counters of the process."""
    observers = Observers(Settings(), POLICY)
    for observe in observers.each:
        observe(CallRecord(an_intent(), an_outcome()))
    await observers.aclose()
    assert 'headway_requests_total{lane="interactive",target="up1"' in observers.metrics.text()


async def test_dep_12_spans_go_to_the_collector_that_is_configured() -> None:
    """A finished and a cancelled call are one ended span each; the caller's trace is kept."""
    trace = "0af7651916cd43dd8448eb211c80319c"
    header = f"00-{trace}-b7ad6b7169203331-01"
    with collector() as found:
        observers = Observers(Settings(otlp_endpoint=found.url, trace_ratio=0), POLICY)
        for outcome in (an_outcome(), an_outcome(status=CallStatus.CANCELLED)):
            for observe in observers.each:
                observe(CallRecord(an_intent(traceparent=header), outcome))
        await observers.aclose()
    sent = b"".join(found.bodies["/v1/traces"])
    assert sent.count(bytes.fromhex(trace)) == 2
    assert b"cancelled" in sent


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message has the command that installs it."""
    monkeypatch.setitem(sys.modules, "gateway.telemetry.otlp", None)
    with pytest.raises(ConfigError, match=r"headway\[otlp\]"):
        Observers(Settings(otlp_endpoint="http://127.0.0.1:9"), POLICY)
