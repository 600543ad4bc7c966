"""Runs in figures."""

import math
from dataclasses import replace

import pytest

from gateway.bench.coserve.figures import Figures, Span, spread
from gateway.bench.coserve.record import CallRecord, Record

SPAN = Span(10, 80, 100)


def _record() -> Record:
    record = Record(prompt_tokens=9000, output_tokens=450)
    for at, wait in ((5.0, 9.0), (12.0, 0.4), (30.0, 0.2), (50.0, 0.6), (90.0, 9.0)):
        call = CallRecord(at, 100, 3)
        for token in range(3):
            record.token(call, at + wait + token * 0.04)
        record.calls.append(call)
    record.calls.append(CallRecord(60.0, 100, 3))
    return record


def test_calls_of_the_span_are_judged() -> None:
    """One without a token waited at least until the end."""
    figures = Figures.of(_record(), SPAN, price=4.0, work=0.5)
    assert (figures.calls, figures.failed) == (4, 0)
    assert figures.ttft_p50 == pytest.approx(400)
    assert figures.ttft_p99 == pytest.approx(40_000)
    assert figures.slo == 0.5
    assert figures.job_start == pytest.approx(400)
    assert figures.itl_p50 == pytest.approx(40)
    assert figures.offline_tokens == 9450 / 90


def test_the_price_is_shared_out_by_work() -> None:
    """What both lanes pay is what the engines cost."""
    figures = Figures.of(_record(), SPAN, price=4.0, work=0.5)
    paid = figures.cost_interactive * figures.interactive_tokens
    paid += figures.cost_offline * figures.offline_tokens
    assert paid * 3600 / 1e6 == pytest.approx(4.0)


def test_arms_are_compared_with_those_that_ran_alone() -> None:
    """Harvest counts what the calls leave."""
    figures = Figures.of(_record(), SPAN, price=4.0, work=0.5)
    alone = replace(figures, ttft_p99=20_000)
    offline = replace(figures, offline_tokens=figures.interactive_tokens + 210)
    beside = figures.beside(alone, offline)
    assert beside.interference == pytest.approx(2)
    assert beside.harvest == pytest.approx(0.5)
    assert math.isnan(figures.beside(None, None).harvest)


def test_the_spread_has_the_least_and_the_most() -> None:
    """Of each figure."""
    figures = Figures.of(_record(), SPAN, price=4.0, work=0.5)
    found = spread([figures, replace(figures, slo=1.0)])["slo"]
    assert (found.mean, found.low, found.high) == (0.75, 0.5, 1.0)


def test_an_arm_without_calls_has_no_waits() -> None:
    """Not zero: not a number."""
    figures = Figures.of(Record(output_tokens=5), SPAN, price=4.0, work=0.5)
    assert math.isnan(figures.ttft_p99)
    assert math.isnan(figures.cost_interactive)
    assert figures.cost_offline > 0
