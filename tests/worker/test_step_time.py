"""The step-time fit."""

import random

import pytest

from gateway.worker.step_time import StepTime, Work


def _machine(work: Work) -> float:
    return 0.01 + 0.002 * work.rows + 2e-6 * work.kv + 0.0001 * work.prompt


def test_it_learns_the_times_it_is_shown() -> None:
    """After some steps of a machine it predicts that machine."""
    times, chance = StepTime(), random.Random(2)
    for _ in range(200):
        rows = chance.randint(1, 60)
        work = Work(rows, rows * chance.randint(80, 200), chance.choice((0, 100, 250)))
        times.learn(work, _machine(work))
    for work in (Work(30, 4000, 100), Work(8, 1000, 0), Work(50, 7000, 250)):
        assert times.predict(work) == pytest.approx(_machine(work), rel=0.06)
    assert times.prompt_within(0.02) == pytest.approx(200, rel=0.1)


def test_a_slower_machine_is_noticed_soon() -> None:
    """What was measured long ago counts for little."""
    times, work = StepTime(), Work(20, 3000, 0)
    for _ in range(500):
        times.learn(work, 0.03)
    for _ in range(120):
        times.learn(work, 0.06)
    assert times.predict(work) == pytest.approx(0.06, rel=0.1)


def test_a_hiccup_counts_for_little() -> None:
    """A step of seconds says something about the machine, not about steps."""
    times, work = StepTime(), Work(10, 1000, 0)
    for _ in range(100):
        times.learn(work, 0.02)
    times.learn(work, 30.0)
    for _ in range(8):
        times.learn(work, 0.02)
    assert times.predict(work) < 0.03


def test_figures_are_plausible_before_the_first_step() -> None:
    """More work takes longer from the start."""
    times = StepTime()
    assert 0 < times.predict(Work(1)) < times.predict(Work(64)) < times.predict(Work(64, 9000))
    assert times.prompt_within(-1) == 0
