"""Occupancy from the worker's metrics."""

import math
from typing import Any

from gateway.bench.gauge import RUNNING, Gauge, Occupancy, value_of
from tests.support.exchange import Exchange
from tests.support.upstream import ScriptedUpstream

TEXT = f"""# HELP {RUNNING} rows
# TYPE {RUNNING} gauge
{RUNNING}{{lane="batch"}} 60
{RUNNING}{{lane="interactive"}} 2.0
{RUNNING}_peak 99
"""


def test_a_metric_is_summed_over_its_series() -> None:
    """Labels are added up, comments and longer names are not taken for it."""
    assert value_of(TEXT, RUNNING) == 62.0
    assert value_of(TEXT, "unknown") == 0.0


def test_the_middle_half_leaves_out_both_ends() -> None:
    """Filling and draining do not count; unseen is not zero."""
    seen = Occupancy(tuple(range(9)), (0, 10, 60, 64, 64, 64, 60, 10, 0))
    assert seen.middle_half(0, 8) == (60 + 64 + 64 + 64 + 60) / 5
    assert math.isnan(seen.middle_half(100, 200))


async def test_it_samples_until_stopped(upstream: ScriptedUpstream) -> None:
    """Samples come from ``/metrics`` beside ``/v1``; a failed one is skipped."""

    class Metrics(ScriptedUpstream):
        async def answer(self, exchange: Exchange) -> None:
            body: Any = TEXT.encode()
            exchange.full(500 if exchange.seen.path != "/metrics" else 200, body)

    server = Metrics().start()
    async with Gauge(server.url, every=0.01) as gauge:
        await server.until(lambda: len(gauge.occupancy().rows) > 2)
        assert gauge.latest == 62.0
    server.stop()
