"""Trials find what is there to be found."""

import pytest

from gateway.bench.coserve import trials
from gateway.bench.coserve.arms import Scene
from gateway.bench.coserve.record import Record
from gateway.bench.workload.trace import Lengths
from gateway.simulator.profile import PROFILES

SCENE = Scene(PROFILES["a100-8b"], seconds=140, rate=2.0, engines=1)


def test_a_wrong_start_is_overcome() -> None:
    """From below and from above."""
    low, _, high, _ = trials.wrong_starts(SCENE)
    assert low.ok, low
    assert high.ok, high


def test_an_engine_without_people_is_used() -> None:
    """Rows of short prompts and long answers need many more than the cap begins with."""
    scene = Scene(SCENE.profile, 1, 2.0, seconds=140, offline=Lengths(200, 0.3, 200, 0.3))
    (found,) = trials.nobody_calls(scene)
    assert found.ok, found


def test_deadlines_hold_with_room_and_the_last_are_late_without(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The late ones are known before."""
    monkeypatch.setattr(trials, "_JOBS_SECONDS", 240.0)
    short = Scene(SCENE.profile, 1, 2.0, seconds=140, offline=Lengths(1000, 0.3, 60, 0.3))
    enough, tight = trials.deadlines(short)
    assert enough.ok, enough
    assert tight.ok, tight


def test_a_change_is_compared_with_what_always_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """Speed, cache and a restart."""
    monkeypatch.setattr(trials, "_SLICES", 1)
    scene = Scene(SCENE.profile, 1, 2.0, seconds=220, offline=Lengths(1000, 0.3, 60, 0.3))
    found = trials.changes(scene)
    assert len(found) == 3
    assert found[0].ok, found[0]
    assert found[1].ok, found[1]
    assert found[2].ok, found[2]


def test_swings_are_seen() -> None:
    """Means of ten seconds, not single moments."""
    steady, swinging = Record(), Record()
    for second in range(200):
        steady.windows.append((float(second), 20, 18 + 4 * (second % 2)))
        swinging.windows.append((float(second), 20, 30 if second // 20 % 2 else 10))
    assert trials.swing(steady, 60) < 0.05
    assert trials.swing(swinging, 60) > 0.4
