"""The simulated benchmark: scenes, their arms, and what must come out."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from gateway.bench.checks import Check
from gateway.bench.coserve.arms import Arm, Scene
from gateway.bench.coserve.figures import Spread, ratio
from gateway.core.load import ITL_TARGET_RANKED
from gateway.pacing.shared import Caps
from gateway.simulator.profile import EngineProfile

ALONE = "interactive alone"
OFFLINE = "offline alone"
NAIVE = "direct and naive"
POOLS = "two static pools"
HEADWAY = "Headway"
PRIORITY = "Headway, priority engine"
EAGER = "Headway at 50 ms"
GATEWAY = "through the gateway"
FULL, HALF, BURSTS = "full load", "half load", "bursts"

_FLOOD = 256
# The dial, ``itl_target``: sooner tokens, the first one too, for less offline work.
_EAGER_TARGET = 0.05
_CAPS = (16, 32)

Results = Mapping[str, Mapping[str, Mapping[str, Spread]]]
"""Spreads of figures by scene and arm."""


@dataclass(frozen=True, slots=True)
class Play:
    """A scene and the arms that are run in it."""

    name: str
    scene: Scene
    arms: tuple[Arm, ...]


def plays(profile: EngineProfile, *, seconds: float, rate: float, engines: int) -> list[Play]:
    """Full load, half of it, and bursts."""
    scene = Scene(profile, engines=engines, rate=rate, seconds=seconds)
    alone, offline = Arm(ALONE), Arm(OFFLINE, cap=_FLOOD, interactive=False)
    pools = Arm(POOLS, cap=_FLOOD, apart=True)
    headway = Arm(HEADWAY, caps=Caps())
    full = (
        alone,
        offline,
        Arm(NAIVE, cap=_FLOOD),
        *((pools,) if engines > 1 else ()),
        *(Arm(f"static cap {cap}", cap=cap) for cap in _CAPS),
        headway,
        Arm(EAGER, caps=Caps(itl_target=_EAGER_TARGET)),
        Arm(PRIORITY, caps=Caps(itl_target=ITL_TARGET_RANKED), policy="priority"),
    )
    half = (alone, offline, *((pools,) if engines > 1 else ()), headway)
    return [
        Play(FULL, scene, full),
        Play(HALF, replace(scene, rate=rate / 2), half),
        Play(BURSTS, replace(scene, cv=4.0), (alone, offline, headway)),
    ]


def checks(results: Results) -> list[Check]:
    """What must hold of the scenes that were played, and what was found."""
    full = results[FULL]
    found = [
        _at_most("p99 TTFT over an FCFS engine, times alone", full[HEADWAY]["interference"], 1.7),
        _at_least("its harvest", full[HEADWAY]["harvest"], 0.70),
        _at_most("p99 TTFT, goal", full[HEADWAY]["interference"], 1.5),
        _at_least("its harvest, goal", full[HEADWAY]["harvest"], 0.80),
        _at_most("p99 TTFT over a priority engine", full[PRIORITY]["interference"], 1.35),
        _at_least("its harvest", full[PRIORITY]["harvest"], 0.72),
        _at_least(
            "naive p99 TTFT, times Headway's",
            _ratio(full[NAIVE]["ttft_p99"], full[HEADWAY]["ttft_p99"]),
            10,
        ),
    ]
    if BURSTS in results:
        bursts = results[BURSTS][HEADWAY]["interference"]
        found.append(_at_most("p99 TTFT in bursts, times alone", bursts, 2.0))
    if POOLS in full:
        found += [
            _at_most(
                "p99 TTFT, times that of two static pools",
                _ratio(full[HEADWAY]["ttft_p99"], full[POOLS]["ttft_p99"]),
                0.5,
            ),
            _at_least(
                "offline tok/s, times that of two static pools",
                _ratio(full[HEADWAY]["offline_tokens"], full[POOLS]["offline_tokens"]),
                0.95,
            ),
        ]
    if POOLS in results.get(HALF, {}):
        half = results[HALF]
        more = _ratio(half[HEADWAY]["offline_tokens"], half[POOLS]["offline_tokens"])
        found.append(_at_least("the same at half load", more, 1.0))
    return found


def _ratio(one: Spread, other: Spread) -> Spread:
    low, high = ratio(one.low, other.high), ratio(one.high, other.low)
    return Spread(ratio(one.mean, other.mean), low, high)


def _at_most(promise: str, found: Spread, limit: float) -> Check:
    return Check(f"{promise}: at most {limit:g}", _said(found), ok=found.mean <= limit)


def _at_least(promise: str, found: Spread, limit: float) -> Check:
    return Check(f"{promise}: at least {limit:g}", _said(found), ok=found.mean >= limit)


def _said(found: Spread) -> str:
    if math.isnan(found.mean):
        return "there is nothing to compare"
    if math.isnan(found.high):
        return f"{found.mean:.2f} (from {found.low:.2f})"
    return f"{found.mean:.2f} ({found.low:.2f} to {found.high:.2f})"
