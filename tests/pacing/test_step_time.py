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
