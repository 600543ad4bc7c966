"""Step times of an engine from outside."""

import random

import pytest

from gateway.pacing.step_time import StepSample, StepTime, StepTimeFit


def test_the_fit_comes_to_the_engine_s_own_figures() -> None:
    """Those that were measured on vLLM with an 8B model on an H200, whatever a hiccup says."""
    engine = StepTime(0.00475, 0.000055, 0.00000002, 0.0000225)
    fit, chance = StepTimeFit(), random.Random(3)
    for _ in range(400):
        rows = chance.uniform(1, 120)
        sample = (rows, rows * chance.uniform(500, 3000), chance.uniform(0, 1500))
        noise = chance.uniform(0.97, 1.03)
        fit.learn(StepSample(*sample, engine.seconds(*sample) * noise))
    for _ in range(5):
        fit.learn(StepSample(20.0, 20_000.0, 0.0, 5.0))
    for _ in range(100):
        fit.learn(StepSample(20.0, 20_000.0, 0.0, engine.seconds(20, 20_000, 0)))
    found = fit.found
    assert fit.samples == 505
    assert found.a == pytest.approx(engine.a, rel=0.1)
    assert found.d == pytest.approx(engine.d, rel=0.05)
    for work in ((60, 120_000, 0), (60, 120_000, 8000), (5, 5_000, 500)):
        assert found.seconds(*work) == pytest.approx(engine.seconds(*work), rel=0.05)


def test_a_stretch_of_slow_steps_is_no_other_speed() -> None:
    """Eleven in a row, again and again, each time with one as before behind them."""
    before, fit = StepTime(0.012, 0.00007, 0.00000009, 0.00007), StepTimeFit()
    usual = before.seconds(20, 50_000, 100)
    for _ in range(500):
        fit.learn(StepSample(20, 50_000, 100, usual))
    for at in range(24):
        fit.learn(StepSample(20, 50_000, 100, usual if at % 12 == 11 else 1.5 * usual))
    assert fit.found.seconds(20, 50_000, 100) == pytest.approx(usual, rel=0.1)


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_another_speed_is_found_within_a_minute(factor: float) -> None:
    """Thirty samples of two seconds, although five hundred spoke of the speed before."""
    before, fit = StepTime(0.012, 0.00007, 0.00000009, 0.00007), StepTimeFit()
    chance = random.Random(5)
    for at in range(530):
        rows = chance.uniform(10, 40)
        sample = (rows, rows * 2500, chance.uniform(0, 450))
        speed = factor if at >= 500 else 1.0
        noise = chance.uniform(0.95, 1.05)
        fit.learn(StepSample(*sample, speed * before.seconds(*sample) * noise))
    for work in ((20, 50_000, 0), (20, 50_000, 500)):
        assert fit.found.seconds(*work) == pytest.approx(factor * before.seconds(*work), rel=0.1)
