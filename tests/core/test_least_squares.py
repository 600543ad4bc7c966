"""A fit that forgets."""

import random

import pytest

from gateway.core.least_squares import ForgetfulFit


def test_it_finds_the_weights_behind_what_it_sees() -> None:
    """Three unknowns, some noise."""
    fit, chance = ForgetfulFit((1.0, 1.0, 1.0), forget=0.99, trust=0.01), random.Random(1)
    for _ in range(500):
        x = (1.0, chance.random(), chance.random())
        fit.learn(x, 2.0 + 3.0 * x[1] + 0.5 * x[2] + chance.gauss(0, 0.01))
    assert fit.weights == pytest.approx([2.0, 3.0, 0.5], abs=0.05)
    assert fit.predict((1.0, 1.0, 1.0)) == pytest.approx(5.5, abs=0.05)


def test_what_was_seen_long_ago_counts_for_little() -> None:
    """The weights follow."""
    fit = ForgetfulFit((1.0,), forget=0.9, trust=0.01)
    for y in [1.0] * 100 + [4.0] * 50:
        fit.learn((1.0,), y)
    assert fit.weights[0] == pytest.approx(4.0, rel=0.02)


def test_without_evidence_the_start_is_believed() -> None:
    """A direction in which nothing moved keeps its weight; none goes below 0."""
    fit = ForgetfulFit((1.0, 7.0), forget=0.99, trust=0.1)
    for _ in range(50):
        fit.learn((1.0, 0.0), -3.0)
    assert fit.weights[1] == pytest.approx(7.0)
    assert fit.weights[0] > 0


def test_weights_are_solved_now_and_then() -> None:
    """On each so-manieth observation."""
    fit = ForgetfulFit((1.0,), forget=0.9, trust=0.01, every=3)
    fit.learn((1.0,), 5.0)
    fit.learn((1.0,), 5.0)
    assert fit.weights == [1.0]
    fit.learn((1.0,), 5.0)
    assert fit.weights[0] > 4.9


def test_it_turns_at_once() -> None:
    """All weights by the same factor; what comes then has more weight."""
    fit = ForgetfulFit((1.0, 1.0), forget=0.995, trust=0.001)
    for at in range(200):
        fit.learn((1.0, at % 5), 2.0 + 3.0 * (at % 5))
    fit.turn(2.0, 0.1)
    assert fit.weights == pytest.approx([4.0, 6.0], rel=0.02)
    for at in range(60):
        fit.learn((1.0, at % 5), 5.0 + 6.0 * (at % 5))
    assert fit.weights[0] == pytest.approx(5.0, rel=0.1)
