"""How much starts within a minute."""

import math
import random

import pytest

from gateway.dispatch.allowance import Allowance


def _starts(allowance: Allowance, now: float, until: float, amount: float = 1) -> list[float]:
    """The times of starts of someone who always has more to start."""
    times = []
    while now < until:
        if wait := allowance.wait(now, amount):
            now += wait + 1e-6
            continue
        allowance.take(now, amount)
        times.append(now)
    return times


def _most(times: list[float], seconds: float) -> int:
    return max(sum(at - seconds < other <= at for other in times) for at in times)


@pytest.mark.parametrize("limit", [1, 3, 60, 1000])
@pytest.mark.parametrize("minute", [60.0, 3.0])
def test_no_minute_has_more_than_the_limit(limit: int, minute: float) -> None:
    """Whatever the limit, every stretch of a minute keeps it, and most of it is used."""
    times = _starts(Allowance(minute, limit), 100.0, 100.0 + 6 * minute)
    assert _most(times, minute) <= limit
    assert len(times) >= 0.9 * 5 * limit


def test_starts_are_spread() -> None:
    """A tenth may go at once, the rest evenly."""
    times = _starts(Allowance(60, 60), 0.0, 60.0)
    assert sum(at < 0.5 for at in times) == 6
    assert 14 <= sum(at < 10.0 for at in times) <= 17


def test_a_limit_told_late_counts_what_started_before() -> None:
    """Starts made before the limit was known are part of its minute."""
    allowance = Allowance(60)
    for _ in range(50):
        allowance.take(10.0, 1)
    allowance.told(10.5, 60, None, None)
    times = [10.0] * 50 + _starts(allowance, 10.5, 200.0)
    assert _most(times, 60.0) <= 60


def test_what_others_use_counts() -> None:
    """The provider says that less is left than we used: others share the limit."""
    allowance = Allowance(60, 100)
    allowance.take(1.0, 1)
    allowance.told(2.0, 100, 20, 30.0)
    assert len(_starts(allowance, 2.0, 40.0)) == 20


def test_a_limit_of_a_longer_time_is_ignored() -> None:
    """14,400 a day are not 14,400 a minute."""
    allowance = Allowance(60)
    allowance.told(0.0, 14_400, 14_370, 180.0)
    assert allowance.pace == math.inf


def test_corrections() -> None:
    """Tokens that were not used may be used by others, and the other way round."""
    allowance = Allowance(60, 1000)
    allowance.take(0.0, 900)
    assert allowance.wait(0.0, 300) > 50
    allowance.correct(0.0, -800)
    assert allowance.wait(6.0, 300) < 50
    allowance.correct(0.0, 800)
    assert allowance.wait(6.0, 300) > 50


def test_a_row_larger_than_the_limit_goes_when_nothing_else_did() -> None:
    """It would wait forever otherwise."""
    allowance = Allowance(60, 100)
    assert allowance.wait(0.0, 500) == 0
    allowance.take(0.0, 500)
    assert allowance.wait(1.0, 1) > 50


def test_throttles_teach_the_pace() -> None:
    """60 were accepted in a second and more will be in 59: 54 a minute, then more and more."""
    allowance = Allowance(60)
    for _ in range(64):
        allowance.take(100.0, 1)
    for number in range(4):
        allowance.correct(100.0, -1)
        allowance.throttled(101.0, 59.0, again=number > 0)
    assert allowance.pace == pytest.approx(54, abs=1)
    _starts(allowance, 160.0, 220.0)
    assert 54 < allowance.pace < 80


def test_a_refusal_of_the_first_row_teaches_nothing() -> None:
    """Nothing was accepted, so there is no pace to tell."""
    allowance = Allowance(60)
    allowance.take(5.0, 1)
    allowance.correct(5.0, -1)
    allowance.throttled(5.1, 1.0, again=False)
    assert allowance.pace == math.inf


@pytest.mark.parametrize("seed", range(5))
def test_the_limit_holds_whatever_happens(seed: int) -> None:
    """Random demand, throttles and told limits: no minute of starts is over the lowest limit."""
    chance = random.Random(seed)
    allowance, now, times = Allowance(60, 40), 0.0, []
    for _ in range(3000):
        now += chance.expovariate(1.0)
        if not allowance.wait(now, 1):
            allowance.take(now, 1)
            times.append(now)
        if chance.random() < 0.02:
            allowance.throttled(now, chance.random(), again=False)
        if chance.random() < 0.02:
            allowance.told(now, chance.choice([50, 200]), chance.choice([None, 10]), 1.0)
    assert _most(times, 60.0) <= 40
