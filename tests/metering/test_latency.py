"""Fresh latencies per target."""

from gateway.core.lanes import Lane
from gateway.core.usage import Usage
from gateway.metering.latency import FreshLatency
from gateway.metering.record import CallIntent, CallOutcome, CallRecord, CallStatus, CallTiming


def _record(target: str, timing: CallTiming, lane: Lane = Lane.INTERACTIVE) -> CallRecord:
    intent = CallIntent("req_1", "t", "k", lane, "default", "/v1/chat/completions", "m", 0.0, 1)
    outcome = CallOutcome(CallStatus.OK, 200, Usage(1, 1), 1.0, target, "m", timing=timing)
    return CallRecord(intent, outcome)


def test_means_are_weighted_and_taken_once() -> None:
    """A call of many gaps weighs more; offline calls and those without a token do not count."""
    fresh = FreshLatency()
    fresh.observe(_record("up", CallTiming(0.1, 10, 0.02)))
    fresh.observe(_record("up", CallTiming(0.3, 30, 0.04)))
    fresh.observe(_record("down", CallTiming(0.5)))
    fresh.observe(_record("up", CallTiming(9.0, 10, 9.0), Lane.BATCH))
    fresh.observe(_record("up", CallTiming()))
    taken = fresh.take()
    assert taken["down"] == (0.5, None)
    assert taken["up"][0] == 0.2
    assert taken["up"][1] is not None
    assert abs(taken["up"][1] - 0.035) < 1e-9
    assert fresh.take() == {}
