"""``headway bench coserve``: runs it and says what came out."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

from gateway.bench.coserve.arms import Scene
from gateway.bench.coserve.counsel import counsel_of, tried_counsel
from gateway.bench.coserve.fitting import AS_TOLD, Fitting
from gateway.bench.coserve.live import Target, live_arms, run_live
from gateway.bench.coserve.plot import draw
from gateway.bench.coserve.report import Report
from gateway.bench.coserve.scenes import FULL, checks, plays
from gateway.bench.coserve.suite import run_plays, run_trials
from gateway.bench.coserve.trials import LEAST_SECONDS
from gateway.bench.interrupt import run_interruptible
from gateway.bench.numbers import MOST, MOST_CALLS
from gateway.bench.workload.trace import CHAT, SUMMARIES, Lengths, TracedCall, read_trace
from gateway.core.errors import ConfigError
from gateway.core.load import ITL_TARGET
from gateway.core.writable import check_writable, writing
from gateway.pacing.shared import Caps
from gateway.simulator.profile import EngineProfile

# Of a run in real time, so much before the offline work, and calls at the end that do not count.
_LIVE_LEAD, _MOST_LEAD = 1 / 12, 10.0
_LIVE_TAIL, _MOST_TAIL = 1 / 8, 15.0


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
    fitting: Fitting = AS_TOLD
    chat: str | None = None
    offline: str | None = None
    report: Path | None = None


def lengths(text: str | None, shape: Lengths) -> Lengths:
    """``IN:OUT``, mean tokens, in the shape of a known load. Raises ConfigError."""
    if text is None:
        return shape
    try:
        prompt, output = (int(part) for part in text.split(":"))
    except ValueError:
        raise ConfigError(f"lengths are tokens in and out, as in 48:12, not {text!r}") from None
    if not (1 <= prompt <= MOST and 1 <= output <= MOST):
        raise ConfigError(f"lengths are from 1 to {MOST:,} tokens in and out, not {text}")
    return shape.with_means(prompt, output)


def run_simulated(console: Console, wanted: Wanted) -> None:
    """All scenes in virtual time, and what must hold."""
    _check(wanted)
    tried = wanted.trials and wanted.trace is None
    if tried and wanted.seconds < LEAST_SECONDS:
        raise ConfigError(f"trials take --seconds {LEAST_SECONDS:g} at least; or give --no-trials")
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
    if tried:
        say("caps from wrong starts, changes under way, deadlines")
        found += run_trials(chosen[0].scene)
    say("advice")
    counsel = tried_counsel(chosen[0].scene, wanted.itl_target)
    _conclude(console, wanted, Report(results, found, counsel))


def run_against(console: Console, wanted: Wanted, target: Target, *, flood: int, cap: int) -> None:
    """The arms that running servers can show, in real time."""
    _check(wanted)
    scene = Scene(
        wanted.profile,
        engines=len(target.urls),
        rate=wanted.rate,
        seconds=wanted.seconds,
        chat=lengths(wanted.chat, CHAT),
        offline=lengths(wanted.offline, SUMMARIES),
        lead=min(_MOST_LEAD, wanted.seconds * _LIVE_LEAD),
        tail=min(_MOST_TAIL, wanted.seconds * _LIVE_TAIL),
    )
    if wanted.trace is not None:
        if wanted.fitting.share is not None:
            raise ConfigError("a trace has a rate of its own: give --share or --trace")
        scene = replace(scene, traces=_windows(wanted.trace, wanted))
    arms = live_arms(target, flood=flood, cap=cap, caps=Caps(itl_target=wanted.itl_target))
    say = _progress(console, wanted)
    slices = range(1, wanted.slices + 1)
    played = run_interruptible(run_live(arms, scene, target, slices, say, wanted.fitting))
    counsel = counsel_of(played.samples, scene.profile, scene, wanted.itl_target)
    _conclude(console, wanted, Report({FULL: played.arms}, [], counsel, played.scene))


def _windows(trace: Path, wanted: Wanted) -> tuple[tuple[TracedCall, ...], ...]:
    """A window of the trace for each slice, one after the other."""
    starts = [number * wanted.seconds for number in range(wanted.slices)]
    return tuple(tuple(read_trace(trace, start=start, seconds=wanted.seconds)) for start in starts)


def _progress(console: Console, wanted: Wanted) -> Callable[[str], None]:
    quiet = wanted.as_json or not console.is_terminal
    return (lambda _: None) if quiet else (lambda text: console.print(f"[dim]{text}[/]"))


def _check(wanted: Wanted) -> None:
    """Before anything runs: what could not end, or could not be written."""
    calls = wanted.rate * wanted.seconds
    if wanted.trace is None and wanted.fitting.share is None and calls > MOST_CALLS:
        raise ConfigError(f"--rate for --seconds is at most {MOST_CALLS:,} calls, not {calls:,.0f}")
    for path in filter(None, (wanted.plot, wanted.report)):
        check_writable(path)


def _conclude(console: Console, wanted: Wanted, report: Report) -> None:
    if wanted.as_json:
        console.out(report.as_json(), highlight=False)
    else:
        report.show(console)
    if wanted.plot is not None:
        _write(wanted.plot, draw("Interactive calls and offline work", report.scenes[FULL]))
    if wanted.report is not None:
        _write(wanted.report, report.as_json())


def _write(path: Path, text: str) -> None:
    with writing(path):
        path.write_text(text)
