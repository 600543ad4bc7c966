"""The limits of one credential."""

import math

import pytest

from gateway.core.rates import RateLimit, RateLimits
from gateway.dispatch.rate import RateBudget


def test_without_limits_nothing_waits() -> None:
    """An engine of ours has no limits."""
    budget = RateBudget(60)
    for _ in range(1000):
        assert budget.wait(1.0, 1e9) == 0
        budget.take(1.0, 1e9)
    assert budget.rate() == math.inf


def test_tokens_and_requests_both_count() -> None:
    """Whichever runs out first is waited for."""
    few = RateBudget(60, requests=1, tokens=1e6)
    few.take(0.0, 10)
    assert few.wait(1.0, 10) > 50
    small = RateBudget(60, requests=1000, tokens=100)
    small.take(0.0, 90)
    assert small.wait(0.1, 20) > 5
    assert few.rate() == pytest.approx(1 / 60)


def test_estimates_are_learned() -> None:
    """Rows that take twice what was thought are reserved twice as much in the end."""
    budget = RateBudget(60)
    reserved = 0.0
    for number in range(100):
        reserved = budget.take(float(number), 100)
        budget.used(float(number), reserved, 200)
    assert reserved == pytest.approx(200, rel=0.02)


def test_a_throttle_closes_for_as_long_as_told() -> None:
    """And a crowd that was out already does not close it again for longer without a word."""
    budget = RateBudget(60)
    budget.take(0.0, 1)
    budget.throttled(1.0, 0.0, 7.0, None)
    assert budget.wait(1.0, 1) == pytest.approx(7)
    budget.throttled(1.1, 0.0, None, None)
    assert budget.wait(1.0, 1) == pytest.approx(7)


def test_pauses_double_until_a_row_is_taken() -> None:
    """Nobody said how long: 1 s, 2 s, 4 s; an answer starts over."""
    budget, now, waits = RateBudget(60), 0.0, []
    for _ in range(4):
        budget.throttled(now, now, None, None)
        waits.append(round(budget.wait(now, 1)))
        now += budget.wait(now, 1) + 0.1
    assert waits == [1, 2, 4, 8]
    budget.accepted()
    budget.throttled(now, now, None, None)
    assert round(budget.wait(now, 1)) == 1


def test_told_limits() -> None:
    """Limits in answers are kept from then on."""
    budget = RateBudget(60)
    budget.take(0.0, 10)
    budget.told(0.1, RateLimits(RateLimit(60, 59, 1.0), RateLimit(600, 590, 1.0)))
    assert budget.rate() == pytest.approx(1.0)
    assert budget.wait(0.2, 595) > 0


def test_a_rejected_credential_rests() -> None:
    """It is tried again after pauses that double; an answer makes it good."""
    budget = RateBudget(60)
    budget.reject(0.0)
    assert budget.rejected
    assert budget.wait(0.0, 1) == pytest.approx(1)
    budget.reject(1.0)
    assert budget.wait(1.0, 1) == pytest.approx(2)
    budget.accepted()
    assert not budget.rejected
