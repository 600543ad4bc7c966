"""Runs on all cores come to the same."""

from gateway.bench.coserve import suite
from gateway.bench.coserve.arms import Arm, Scene
from gateway.bench.coserve.scenes import ALONE, OFFLINE, Play
from gateway.bench.coserve.suite import run_plays
from gateway.simulator.profile import PROFILES


def test_arms_of_a_slice_stand_side_by_side() -> None:
    """In one process or two."""
    arms = (Arm(ALONE), Arm(OFFLINE, cap=64, interactive=False), Arm("cap", cap=8))
    plays = [Play("short", Scene(PROFILES["a100-8b"], seconds=50), arms)]
    said: list[str] = []
    one = run_plays(plays, (1, 2), said.append, 1)
    two = run_plays(plays, (1, 2), said.append, 2)
    assert str(one) == str(two)
    assert one["short"]["cap"]["interference"].low > 1
    assert one["short"]["cap"]["harvest"].high < 1
    assert said[:3] == [f"short: {arm.name}" for arm in arms]


def test_trials_run_in_their_own_processes() -> None:
    """All of them, in order."""
    assert [trial.__name__ for trial in suite.TRIALS] == [
        "deadlines",
        "wrong_starts",
        "nobody_calls",
        "changes",
    ]
