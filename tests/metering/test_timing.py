"""First token and gaps."""

import pytest

from gateway.metering.record import CallTiming
from gateway.metering.timing import TokenTiming


def test_without_content_there_is_no_first_token() -> None:
    """A call that never answered has no TTFT."""
    assert TokenTiming(5.0).summary() == CallTiming()


def test_one_token_has_no_gap() -> None:
    """TTFT runs from the start."""
    timing = TokenTiming(5.0)
    timing.content(5.5)
    assert timing.summary() == CallTiming(0.5)


def test_gaps_are_summed_up() -> None:
    """Mean and longest are exact; percentiles are within a tenth."""
    timing = TokenTiming(0.0)
    now = 1.0
    timing.content(now)
    for gap in [0.01] * 98 + [0.5] * 2:
        now += gap
        timing.content(now)
    summary = timing.summary()
    assert summary.gaps == 100
    assert summary.itl_mean_s == pytest.approx(0.0198)
    assert summary.itl_p50_s == pytest.approx(0.01, rel=0.1)
    assert summary.itl_p99_s == pytest.approx(0.5, rel=0.1)
    assert summary.itl_max_s == pytest.approx(0.5)


def test_tokens_that_arrive_together() -> None:
    """Gaps of 0 are gaps."""
    timing = TokenTiming(0.0)
    for _ in range(3):
        timing.content(1.0)
    assert timing.summary().itl_p99_s == 0.0
