"""The step-time fit."""

import pytest

from gateway.worker.step_time import StepTime


def test_it_learns_the_times_it_is_shown() -> None:
    """After some steps of a machine it predicts that machine."""
    times = StepTime()
    for rows in range(1, 60):
        for tokens in (0, 100, 250):
            times.learn(rows, tokens, 0.01 + 0.002 * rows + 0.0001 * tokens)
    assert times.predict(30, 100) == pytest.approx(0.08, rel=0.05)
    assert times.rows_within(0.08, 100) == pytest.approx(30, abs=2)
    assert times.tokens_within(0.03) == pytest.approx(200, abs=15)


def test_a_hiccup_is_not_learned() -> None:
    """A step of seconds says something about the machine, not about steps."""
    times = StepTime()
    before = times.predict(10, 0)
    times.learn(10, 0, 30.0)
    assert times.predict(10, 0) == before
