"""Workers for a job with a deadline, beside interactive load."""

import math
from dataclasses import dataclass

from gateway.bench.planning.steady import Shape, Steady, steady
from gateway.core.errors import ConfigError
from gateway.simulator.profile import EngineProfile

#: Of the time until the deadline, what a worker is there for: restarts, hiccups, skewed lengths.
AVAILABLE = 0.85
# Of the batch, what runs on average while the last rows end.
_TAIL = 0.05


@dataclass(frozen=True, slots=True)
class Job:
    """``items`` rows due in ``deadline`` seconds, or at no time in particular."""

    items: int
    shape: Shape
    deadline: float | None = None

    def __post_init__(self) -> None:
        if min(self.items, self.shape.prompt, self.shape.output) < 1 or (self.deadline or 1) <= 0:
            raise ConfigError("Items, lengths and deadline are above 0.")

    @property
    def tokens(self) -> float:
        """In and out, of all items."""
        return self.items * (self.shape.prompt + self.shape.output)


@dataclass(frozen=True, slots=True)
class Interactive:
    """Calls a second, and their lengths, that the same workers serve first."""

    rate: float
    shape: Shape


@dataclass(frozen=True, slots=True)
class Fleet:
    """What so many workers make of the job; ``seconds`` is infinite when they never end it."""

    workers: int
    seconds: float
    cost: float
    in_time: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """The answer. ``load`` are the workers that interactive calls take."""

    job: Job
    profile: EngineProfile
    engine: Steady
    load: float
    fleet: Fleet
    fewer: Fleet | None
    more: Fleet
    needed: int
    warnings: tuple[str, ...]


def make_plan(
    profile: EngineProfile,
    job: Job,
    interactive: Interactive | None = None,
    workers: int | None = None,
) -> Plan:
    """Workers needed for ``job``, or what ``workers`` make of it. Raises ConfigError."""
    for shape in (job.shape, interactive.shape if interactive else job.shape):
        if shape.prompt + shape.output > profile.kv_tokens:
            raise ConfigError(f"The cache holds {profile.kv_tokens:,} tokens: not one item fits.")
    engine = steady(profile, job.shape)
    load = interactive.rate / steady(profile, interactive.shape).items if interactive else 0.0
    needed = _needed(job, engine, load)
    chosen = workers or needed

    def fleet(count: int) -> Fleet:
        return _fleet(profile, job, engine, load, count)

    fewer = fleet(chosen - 1) if chosen > 1 else None
    found = fleet(chosen)
    warnings = tuple(_warnings(profile, job, found, needed, load))
    return Plan(job, profile, engine, load, found, fewer, fleet(chosen + 1), needed, warnings)


def _needed(job: Job, engine: Steady, load: float) -> int:
    """The fewest workers that end in time, some of them down for a while."""
    if job.deadline is None:
        return math.floor(load) + 1
    busy = job.items / engine.items
    return max(1, math.ceil(busy / (job.deadline * AVAILABLE) + load))


def _fleet(profile: EngineProfile, job: Job, engine: Steady, load: float, workers: int) -> Fleet:
    left = workers - load
    if left <= 0:
        return Fleet(workers, math.inf, math.inf, in_time=False)
    share = job.items / left
    if share < engine.rows:
        engine = steady(profile, job.shape, max(1.0, share))
    # The longest of the last rows runs on in a batch that grows empty.
    rows = min(share, engine.rows)
    last = job.shape.longest(rows * workers) - job.shape.output
    step = profile.seconds(round(rows * _TAIL), rows * _TAIL * job.shape.context, 0)
    seconds = share / engine.items + last * step
    cost = workers * profile.price * seconds / 3600
    return Fleet(workers, seconds, cost, job.deadline is None or seconds <= job.deadline)


def _warnings(
    profile: EngineProfile, job: Job, fleet: Fleet, needed: int, load: float
) -> list[str]:
    found = []
    if job.deadline is not None:
        alone = profile.seconds(1, job.shape.context, 0) * job.shape.output
        if alone > job.deadline:
            found.append(
                f"The deadline cannot be met with any number of workers: one item alone takes "
                f"{alone:.0f} s."
            )
        elif not fleet.in_time:
            found.append(
                f"The deadline cannot be met with {fleet.workers} worker(s): {needed} are needed."
            )
    if load >= fleet.workers:
        found.append(f"Interactive calls alone take {load:.1f} workers: the job would never end.")
    return found
