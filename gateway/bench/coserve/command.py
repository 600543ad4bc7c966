"""``headway bench coserve``: runs it and says what came out."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from gateway.bench.checks import Check
from gateway.bench.coserve.arms import Scene
from gateway.bench.coserve.counsel import Counsel, counsel_of, tried_counsel
from gateway.bench.coserve.figures import Spread
from gateway.bench.coserve.live import Target, live_arms, run_live
from gateway.bench.coserve.plot import draw
from gateway.bench.coserve.scenes import FULL, checks, plays
from gateway.bench.coserve.show import as_json, show_arms
from gateway.bench.coserve.suite import run_plays, run_trials
from gateway.bench.interrupt import run_interruptible
from gateway.bench.table import show_checks
from gateway.bench.workload.trace import TracedCall, read_trace
from gateway.core.errors import ConfigError
from gateway.core.load import ITL_TARGET
from gateway.pacing.shared import Caps
from gateway.simulator.profile import EngineProfile

_LIVE_LEAD = 10.0


@dataclass(frozen=True, slots=True)
class Wanted:
    """The options of the command."""

    profile: EngineProfile
    engines: int
    rate: float
    seconds: float
    slices: int
    trace: Path | None = None
    as_json: bool = False
    plot: Path | None = None
    trials: bool = True
    itl_target: float = ITL_TARGET


def run_simulated(console: Console, wanted: Wanted) -> None:
    """All scenes in virtual time, and what must hold."""
    say = _progress(console, wanted)
    slices = range(1, wanted.slices + 1)
    chosen = plays(
        wanted.profile,
        seconds=wanted.seconds,
        rate=wanted.rate,
        engines=wanted.engines,
    )
    if wanted.trace is not None:
        scene = replace(chosen[0].scene, traces=_windows(wanted.trace, wanted))
        chosen = [replace(chosen[0], scene=scene)]
    results = run_plays(chosen, slices, say)
    found = checks(results)
    if wanted.trials and wanted.trace is None:
        say("caps from wrong starts, changes under way, deadlines")
        found += run_trials(chosen[0].scene)
    say("advice")
    _conclude(console, wanted, results, found, tried_counsel(chosen[0].scene, wanted.itl_target))


def run_against(
    console: Console, wanted: Wanted, target: Target, *, flood: int, cap: int, caps: Caps
) -> None:
    """The arms that running servers can show, in real time."""
    scene = Scene(
        wanted.profile,
        engines=len(target.urls),
        rate=wanted.rate,
        seconds=wanted.seconds,
        lead=_LIVE_LEAD,
    )
    if wanted.trace is not None:
        scene = replace(scene, traces=_windows(wanted.trace, wanted))
    arms = live_arms(target, flood=flood, cap=cap, caps=caps)
    say = _progress(console, wanted)
    slices = range(1, wanted.slices + 1)
    results, samples = run_interruptible(run_live(arms, scene, target, slices, say))
    counsel = counsel_of(samples, scene.profile, scene, wanted.itl_target)
    _conclude(console, wanted, {FULL: results}, [], counsel)


def _windows(trace: Path, wanted: Wanted) -> tuple[tuple[TracedCall, ...], ...]:
    """A window of the trace for each slice, one after the other."""
    starts = [number * wanted.seconds for number in range(wanted.slices)]
    return tuple(tuple(read_trace(trace, start=start, seconds=wanted.seconds)) for start in starts)


def _progress(console: Console, wanted: Wanted) -> Callable[[str], None]:
    quiet = wanted.as_json or not console.is_terminal
    return (lambda _: None) if quiet else (lambda text: console.print(f"[dim]{text}[/]"))


def _conclude(
    console: Console,
    wanted: Wanted,
    results: Mapping[str, Mapping[str, Mapping[str, Spread]]],
    found: Sequence[Check],
    counsel: Counsel | None,
) -> None:
    if wanted.plot is not None:
        _write(wanted.plot, draw("Interactive calls and offline work", results[FULL]))
    if wanted.as_json:
        report: dict[str, Any] = {"scenes": as_json(results)}
        report["checks"] = [
            {"promise": check.promise, "found": check.found, "ok": check.ok} for check in found
        ]
        report["advice"] = counsel and counsel.as_json()
        console.out(json.dumps(report, indent=2), highlight=False)
        return
    for name, arms in results.items():
        show_arms(console, name, arms)
    show_checks(console, found)
    for line in counsel.lines() if counsel else ["Too few steps were seen for advice."]:
        console.print(line, highlight=False)


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text)
    except OSError as error:
        raise ConfigError(f"cannot be written: {error.strerror}", file=path) from None
