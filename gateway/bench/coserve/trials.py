"""What the pacer must do over time: find its caps, find them again, and keep deadlines."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gateway.bench.checks import Check
from gateway.bench.coserve.arms import LEAD_SECONDS, Arm, Scene, run_arm
from gateway.bench.coserve.figures import ratio
from gateway.bench.coserve.host import EngineHost
from gateway.bench.coserve.record import Record
from gateway.bench.coserve.rows import Backlog, OfflineJob
from gateway.bench.coserve.virtual import Change, Happening
from gateway.bench.workload.trace import backlog
from gateway.pacing.shared import Caps

if TYPE_CHECKING:
    from gateway.simulator.profile import EngineProfile

_FIXED = (8, 12, 16, 24, 32, 48, 64)
_STARTS = (4, 256)
_FLOOD = 256
_SETTLE_SECONDS = 60.0
_CHANGE_AT = 120.0
_SLICES = 8
_JOBS = 6
_JOBS_SECONDS = 1500.0
_MEAN_SECONDS = 10
#: Engine time that the trials need: a change, a minute after it, and something to see then.
LEAST_SECONDS = 200.0
# As jobs with a deadline have it in max_tokens: an answer of 8,000 takes minutes by itself.
_LONGEST = 1024
_HEADWAY = Arm("Headway", caps=Caps())


@dataclass(frozen=True, slots=True)
class _Slower:
    factor: float

    def __call__(self, hosts: Sequence[EngineHost]) -> None:
        for host in hosts:
            host.engine.profile = host.engine.profile.faster(1 / self.factor)


@dataclass(frozen=True, slots=True)
class _Smaller:
    kv_tokens: int

    def __call__(self, hosts: Sequence[EngineHost]) -> None:
        for host in hosts:
            host.engine.profile = replace(host.engine.profile, kv_tokens=self.kv_tokens)


def _restart(hosts: Sequence[EngineHost]) -> None:
    hosts[0].restart()


def _arrive(hosts: Sequence[EngineHost]) -> None:
    for host in hosts:
        host.up = True


def nobody_calls(scene: Scene) -> list[Check]:
    """Without people the cap still grows, as far as gaps stay short for the first who comes."""
    begin = LEAD_SECONDS + _SETTLE_SECONDS
    arms = replace(_HEADWAY, interactive=False), replace(_fixed(_FLOOD), interactive=False)
    ours, flood = (_rate(run_arm(arm, scene, 1), begin, scene.seconds) for arm in arms)
    found, must = ours / flood, 0.85
    name = f"while nobody calls: at least {must} of what {_FLOOD} rows an engine give"
    return [Check(name, f"{found:.2f}", ok=found >= must)]


def wrong_starts(scene: Scene) -> list[Check]:
    """From a cap far off: after a minute as good as the best fixed cap, and steady."""
    begin = LEAD_SECONDS + _SETTLE_SECONDS
    fixed = {cap: run_arm(_fixed(cap), scene, 1) for cap in _FIXED}
    good = {cap: found for cap, found in fixed.items() if _calm(found)} or fixed
    best = max(good, key=lambda cap: _rate(good[cap], begin, scene.seconds))
    wanted = _rate(fixed[best], begin, scene.seconds)
    checks = []
    for start in _STARTS:
        found = run_arm(Arm("start", caps=Caps(start=start)), scene, 1)
        share = ratio(_rate(found, begin, scene.seconds), wanted)
        swings = swing(found, begin)
        checks += [
            Check(
                f"from a cap of {start}, after 60 s: at least 0.85 of the best fixed cap",
                f"{share:.2f} of cap {best}",
                ok=share >= 0.85,  # noqa: PLR2004 - the promise
            ),
            Check("its cap swings by at most 20 %", f"{swings:.0%}", ok=swings <= 0.2),  # noqa: PLR2004
        ]
    return checks


def changes(scene: Scene) -> list[Check]:
    """Engines change under way: a minute later all is as if they had always been so.

    On several slices together: where little is left for offline work, a slice is a few long rows.
    """
    small = scene.profile.kv_tokens // 2
    cases: list[tuple[str, Happening, int, EngineProfile]] = [
        ("half the speed", _Slower(2.0), 0, scene.profile.faster(0.5)),
        ("half the cache", _Smaller(small), 0, replace(scene.profile, kv_tokens=small)),
        ("a restart of one engine", _restart, 0, scene.profile),
    ]
    if scene.engines > 1:
        cases.append(("an engine was added", _arrive, 1, scene.profile))
    always = {profile: _pace(replace(scene, profile=profile)) for _, _, _, profile in cases}
    checks = []
    for name, apply, absent, profile in cases:
        changed = replace(scene, changes=(Change(_CHANGE_AT, apply),), absent=absent)
        share = ratio(_pace(changed), always[profile])
        checks.append(
            Check(
                f"a minute after {name}: offline work within 15 % of what it always was then",
                f"{share:.2f}",
                ok=abs(share - 1) <= 0.15,  # noqa: PLR2004 - the promise
            )
        )
    return checks


def _pace(scene: Scene) -> float:
    """Offline tokens a second from a minute after the change on, all slices together."""
    begin = _CHANGE_AT + _SETTLE_SECONDS
    runs = (run_arm(_HEADWAY, scene, number) for number in range(1, _SLICES + 1))
    return sum(_rate(run, begin, scene.seconds) for run in runs)


def deadlines(scene: Scene) -> list[Check]:
    """Jobs with 1.3 and with 0.8 of the capacity they need."""
    pace = _rate(run_arm(_HEADWAY, scene, 1), LEAD_SECONDS, scene.seconds)
    room = _JOBS_SECONDS
    eased = [room * (at + 1) / _JOBS for at in range(_JOBS)]
    enough = _run_jobs(scene, _jobs(scene, pace, eased, 1.3))
    late = [job for job in range(_JOBS) if enough.get(job, math.inf) > LEAD_SECONDS + eased[job]]
    tight = _jobs(scene, pace, [room] * _JOBS, 0.8)
    found = _run_jobs(scene, tight)
    missed = [job for job in range(_JOBS) if found.get(job, math.inf) > LEAD_SECONDS + room]
    told = _told(tight, pace, room)
    return [
        Check("with 1.3 of the capacity needed no deadline is missed", f"{len(late)}", ok=not late),
        Check(
            "with 0.8 of it the jobs that rank last are late, as was known before",
            f"late {missed}, told {told}",
            ok=bool(missed) and missed == told,
        ),
    ]


def _fixed(cap: int) -> Arm:
    return Arm(f"fixed {cap}", caps=Caps(floor=cap, start=cap, ceiling=cap))


def _jobs(scene: Scene, pace: float, ends: list[float], capacity: float) -> list[OfflineJob]:
    """Jobs of equal size; their work takes the time until the last end, over ``capacity``."""
    rows, jobs = backlog(scene.offline, 7), []
    for end in ends:
        wanted, taken = pace * max(ends) / len(ends) / capacity, 0
        chosen = []
        while taken < wanted:
            prompt, output = next(rows)
            chosen.append((prompt, min(output, _LONGEST)))
            taken += sum(chosen[-1])
        jobs.append(OfflineJob(tuple(chosen), end))
    return jobs


def _run_jobs(scene: Scene, jobs: list[OfflineJob]) -> dict[int, float]:
    """When the last row of each job ended; jobs with rows left over are absent."""
    longer = replace(scene, seconds=2 * _JOBS_SECONDS)
    record = run_arm(_HEADWAY, longer, 1, Backlog.of_jobs(jobs))
    return {
        number: record.finished[number]
        for number, job in enumerate(jobs)
        if record.ended.get(number) == len(job.rows)
    }


def _told(jobs: list[OfflineJob], pace: float, room: float) -> list[int]:
    """Jobs that will be late at this pace, in the order in which they are served."""
    done, late = 0.0, []
    for number, job in enumerate(jobs):
        done += sum(map(sum, job.rows)) / pace
        if done > room:
            late.append(number)
    return late


def _calm(record: Record) -> bool:
    """Whether calls waited for their first token about as long as they should."""
    waits = sorted(call.ttft for call in record.calls if call.at > LEAD_SECONDS)
    return not waits or waits[int(0.9 * len(waits))] <= 0.5  # noqa: PLR2004 - the SLO


def _rate(record: Record, start: float, end: float) -> float:
    """Offline tokens a second in a part of the run."""
    inside = [(at, tokens) for at, tokens in record.progress if start <= at <= end]
    (first, before), (last, after) = inside[0], inside[-1]
    return (after - before) / (last - first)


def swing(record: Record, start: float) -> float:
    """How far means of ten seconds of the rows in flight go from the mean of all."""
    rows = [running for at, _, running in record.windows if at >= start]
    size = _MEAN_SECONDS * max(1, round(len(rows) / (record.windows[-1][0] - start)))
    means = [sum(rows[at : at + size]) / size for at in range(0, len(rows) - size + 1, size)]
    mean = sum(means) / len(means)
    return ratio(max(abs(value - mean) for value in means), mean)
