"""Runs plays on several slices, on all cores, and puts the arms of a slice side by side."""

import gc
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor

from gateway.bench.checks import Check
from gateway.bench.coserve.arms import Arm, Scene, figures_of, run_arm
from gateway.bench.coserve.figures import Figures, Spread, spread
from gateway.bench.coserve.scenes import ALONE, OFFLINE, Play
from gateway.bench.coserve.trials import changes, deadlines, nobody_calls, wrong_starts

TRIALS = (deadlines, wrong_starts, nobody_calls, changes)

_Run = tuple[Arm, Scene, int]


def run_plays(
    plays: Sequence[Play], slices: Sequence[int], said: Callable[[str], None], processes: int = 0
) -> dict[str, dict[str, dict[str, Spread]]]:
    """Spreads by scene and arm; each slice is one seed of the load."""
    runs = [(arm, play.scene, seed) for play in plays for arm in play.arms for seed in slices]
    found = iter(_figures(runs, processes or os.cpu_count() or 1))
    results: dict[str, dict[str, dict[str, Spread]]] = {}
    for play in plays:
        arms: dict[str, list[Figures]] = {}
        for arm in play.arms:
            arms[arm.name] = [next(found) for _ in slices]
            said(f"{play.name}: {arm.name}")
        results[play.name] = {name: spread(_beside(arms, runs)) for name, runs in arms.items()}
    return results


def run_trials(scene: Scene, processes: int = 0) -> list[Check]:
    """What the pacer must do over time."""
    with ProcessPoolExecutor(processes or os.cpu_count() or 1) as pool:
        found = [pool.submit(trial, scene) for trial in TRIALS]
        return [check for future in found for check in future.result()]


def _beside(arms: dict[str, list[Figures]], runs: list[Figures]) -> list[Figures]:
    """Each slice compared with what ran alone in the same slice."""
    alone, offline = arms.get(ALONE), arms.get(OFFLINE)
    return [
        figures.beside(alone[at] if alone else None, offline[at] if offline else None)
        for at, figures in enumerate(runs)
    ]


def _figures(runs: Sequence[_Run], processes: int) -> Iterable[Figures]:
    if processes == 1:
        yield from map(_one, runs)
        return
    with ProcessPoolExecutor(processes) as pool:
        yield from pool.map(_one, runs)


def _one(run: _Run) -> Figures:
    """One arm on one slice. Without collections: a run makes no cycles worth a pause."""
    arm, scene, seed = run
    gc.disable()
    return figures_of(run_arm(arm, scene, seed), scene)
