"""Scenes and what must hold of them."""

from dataclasses import fields

from gateway.bench.coserve.figures import Figures, Spread
from gateway.bench.coserve.scenes import (
    BURSTS,
    EAGER,
    FULL,
    HALF,
    HEADWAY,
    NAIVE,
    POOLS,
    PRIORITY,
    checks,
    plays,
)
from gateway.simulator.profile import PROFILES


def _spreads(**values: float) -> dict[str, Spread]:
    figures = dict.fromkeys((field.name for field in fields(Figures)), 1.0) | values
    return {name: Spread(value, value, value) for name, value in figures.items()}


def test_every_scene_has_what_its_arms_are_compared_with() -> None:
    """Alone, both ways; one engine has no pools."""
    for engines in (1, 2):
        for play in plays(PROFILES["a100-8b"], seconds=60, rate=5, engines=engines):
            names = [arm.name for arm in play.arms]
            assert names[:2] == ["interactive alone", "offline alone"]
            assert (POOLS in names) == (engines > 1 and play.name != BURSTS)


def test_checks_pass_and_fail_with_the_figures() -> None:
    """Each promise is one line."""
    good = _spreads(ttft_p99=100, interference=1.2, harvest=0.9, offline_tokens=10)
    naive = _spreads(ttft_p99=5000)
    pools = _spreads(ttft_p99=300, offline_tokens=8)
    results = {
        FULL: {HEADWAY: good, EAGER: good, PRIORITY: good, NAIVE: naive, POOLS: pools},
        HALF: {HEADWAY: good, POOLS: pools},
        BURSTS: {HEADWAY: good},
    }
    found = checks(results)
    assert len(found) == 11
    assert all(check.ok for check in found)
    bad = _spreads(ttft_p99=1000, interference=3, harvest=0.1, offline_tokens=1)
    results[FULL] |= {HEADWAY: bad, EAGER: bad, PRIORITY: bad}
    assert sum(not check.ok for check in checks(results)) == 9
    del results[HALF], results[BURSTS]
    assert len(checks(results)) == 9
