"""Workers for a job with a deadline, beside interactive load."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gateway.bench.planning.steady import Shape, Steady, steady
from gateway.core.errors import ConfigError
from gateway.simulator.profile import EngineProfile

#: Of the time until the deadline, what a worker is there for: restarts, hiccups, skewed lengths.
AVAILABLE = 0.85
_MOST_ITEMS = 10**12
_MOST_WORKERS = 10**6
_MOST_CALLS = 1e6
_SOONEST, _LATEST = 1.0, 1000 * 365 * 86400.0
# Of the batch, what runs on average while the last rows end.
_TAIL = 0.05


@dataclass(frozen=True, slots=True)
class Job:
    """``items`` rows due in ``deadline`` seconds, or at no time in particular."""

    items: int
    shape: Shape
    deadline: float | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.items <= _MOST_ITEMS:
            raise ConfigError(f"A job has 1 to {_MOST_ITEMS:,} items.")
        if self.deadline is not None and not _SOONEST <= self.deadline <= _LATEST:
            raise ConfigError("A deadline is a second away at least, and a thousand years at most.")

    @property
    def tokens(self) -> float:
        """In and out, of all items."""
        return self.items * (self.shape.prompt + self.shape.output)


@dataclass(frozen=True, slots=True)
class Interactive:
    """Calls a second, and their lengths, that the same workers serve first."""

    rate: float
    shape: Shape

    def __post_init__(self) -> None:
        if not 0 < self.rate <= _MOST_CALLS:
            raise ConfigError(f"Calls a second are above 0, and {_MOST_CALLS:,.0f} at most.")


@dataclass(frozen=True, slots=True)
class Fleet:
    """What so many workers make of the job; ``seconds`` is infinite when they never end it."""

    workers: int
    seconds: float
    cost: float
    in_time: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """The answer. ``load`` are the workers that interactive calls take.

    ``needed`` are the fewest that end in time; None when no number of them does.
    """

    job: Job
    profile: EngineProfile
    engine: Steady
    load: float
    fleet: Fleet
    fewer: Fleet | None
    more: Fleet
    needed: int | None
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
    if not 1 <= (workers or 1) <= _MOST_WORKERS:
        raise ConfigError(f"Workers are 1 to {_MOST_WORKERS:,}.")

    def fleet(count: int) -> Fleet:
        return _fleet(profile, job, engine, load, count)

    least = _least(job, engine, load)
    # With a worker for each item, no further one would make it faster.
    needed = _first_in_time(fleet, least, least + job.items)
    chosen = workers or needed or least
    fewer = fleet(chosen - 1) if chosen > 1 else None
    found = fleet(chosen)
    fastest = fleet(least + job.items)
    warnings = tuple(_warnings(found, needed, fastest, load))
    return Plan(job, profile, engine, load, found, fewer, fleet(chosen + 1), needed, warnings)


def _least(job: Job, engine: Steady, load: float) -> int:
    """The fewest workers that do the work in time, some of them down for a while."""
    if job.deadline is None:
        return math.floor(load) + 1
    busy = job.items / engine.items
    return max(1, math.ceil(busy / (job.deadline * AVAILABLE) + load))


def _first_in_time(fleet: Callable[[int], Fleet], low: int, high: int) -> int | None:
    """The fewest workers, ``low`` at least, whose last answer comes in time too."""
    if fleet(low).in_time:
        return low
    if not fleet(high).in_time:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fleet(middle).in_time else (middle, high)
    return high


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


def _warnings(fleet: Fleet, needed: int | None, fastest: Fleet, load: float) -> Iterator[str]:
    if needed is None:
        yield (
            f"The deadline cannot be met with any number of workers: the longest answer alone "
            f"takes {fastest.seconds:.0f} s."
        )
    elif not fleet.in_time:
        yield f"The deadline cannot be met with {fleet.workers} worker(s): {needed} are needed."
    if load >= fleet.workers:
        yield f"Interactive calls alone take {load:.1f} workers: the job would never end."
