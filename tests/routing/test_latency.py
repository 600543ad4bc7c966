"""What is known about how long a target lets wait."""

import pytest

from gateway.routing.latency import PeakLatency


def test_follows_a_rise_at_once() -> None:
    """One slow answer counts in full."""
    latency = PeakLatency()
    assert latency.value(0) == 0
    latency.seen(0.1, 0)
    latency.seen(2.0, 0)
    assert latency.value(0) == 2.0


def test_follows_a_fall_slowly() -> None:
    """Quick answers bring it down over some seconds."""
    latency = PeakLatency()
    latency.seen(2.0, 0)
    latency.seen(0.1, 1)
    assert latency.value(1) > 1.5
    for second in range(2, 60):
        latency.seen(0.1, second)
    assert latency.value(59) == pytest.approx(0.1, rel=0.1)


def test_fades_when_nothing_is_seen() -> None:
    """A target that was slow once is not shunned for good."""
    latency = PeakLatency()
    latency.seen(2.0, 0)
    assert latency.value(60) < 0.01
