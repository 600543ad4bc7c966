"""Figures of streamed calls."""

import math

import pytest

from gateway.bench.timing import Latency, Spread, Timing, percentile, total
from gateway.core.usage import Usage


def test_times_of_one_call() -> None:
    """TTFT counts from the request, ITL between tokens."""
    timing = Timing(10.0, [10.5, 10.75, 11.0], 11.5, Usage(3, 3))
    assert (timing.ttft, timing.gaps, timing.duration) == (0.5, [0.25, 0.25], 1.5)


def test_a_call_without_a_token_has_no_first_one() -> None:
    """Its TTFT spoils the percentiles instead of flattering them."""
    assert math.isinf(Timing(1.0).ttft)
    assert math.isinf(Spread.of([0.1, Timing(1.0).ttft]).p99)


@pytest.mark.parametrize(("percent", "expected"), [(50, 50), (99, 99), (1, 1), (100, 100)])
def test_nearest_rank(percent: float, expected: float) -> None:
    """A percentile is one of the measured figures."""
    assert percentile(list(range(1, 101)), percent) == expected


def test_no_figures_give_no_number() -> None:
    """Nothing measured is not zero."""
    assert math.isnan(percentile([], 50))


def test_a_set_of_calls() -> None:
    """First tokens and gaps are spread separately; tokens add up."""
    calls = [Timing(0.0, [1.0, 1.5], 2.0, Usage(1, 2)), Timing(0.0, [3.0, 3.25], 4.0, Usage(5, 2))]
    latency = Latency.of(calls)
    assert (latency.ttft.p50, latency.ttft.p99, latency.ttft.count) == (1.0, 3.0, 2)
    assert (latency.itl.p50, latency.itl.p99) == (0.25, 0.5)
    assert total(calls) == Usage(6, 4)
