"""A short soak, and a judge that can say no."""

from pathlib import Path

from tests.soak.gauge import Reading
from tests.soak.run import Plan, soak


def test_twenty_seconds(tmp_path: Path) -> None:
    """Faults, leaving clients and a target that comes and goes: nothing unexplained or left."""
    outcome = soak(Plan(12, seed=1, rate=40, warm_up=8, up=6, at_once=100), tmp_path)
    assert outcome.faults == []
    assert outcome.calls["complete"] > 400
    assert outcome.calls["left"] > 5
    assert outcome.calls["error"] > 5
    assert len(outcome.struck) >= 7


def test_a_leak_is_found() -> None:
    """Each of them, in words."""
    before = Reading(rss=100 << 20, files=20, kept=5, tasks=9, places=0)
    after = Reading(rss=111 << 20, files=24, kept=5, tasks=13, places=1)
    assert len(after.leaks_since(before)) == 4
    assert before.leaks_since(before) == []
