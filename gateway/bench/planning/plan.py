"""Workers for a job with a deadline, beside interactive load."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gateway.bench.planning.beside import People, beside
from gateway.bench.planning.steady import Shape, Steady, steady
from gateway.core.errors import ConfigError
from gateway.core.load import ITL_TARGET
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
    _check(profile, [job.shape, *([interactive.shape] if interactive else [])], workers or 1)
    load = interactive.rate / steady(profile, interactive.shape).items if interactive else 0.0

    def engine(count: int, rows: float | None = None) -> Steady:
        if interactive is None:
            return steady(profile, job.shape, rows)
        people = People(interactive.rate / count, interactive.shape)
        return beside(profile, job.shape, people, rows)

    def fleet(count: int) -> Fleet:
        if count <= load:
            return Fleet(count, math.inf, math.inf, in_time=False)
        return _fleet(profile, job, lambda rows: engine(count, rows), count)

    def done(count: int) -> bool:
        """Whether the work is done in time, with some of the workers down for a while."""
        due = math.inf if job.deadline is None else job.deadline * AVAILABLE
        return job.items / (count * engine(count).items) <= due

    least = _first(done, math.floor(load) + 1) or 1
    # With a worker for each item, no further one would make it faster.
    needed = _first(lambda count: fleet(count).in_time, least, least + job.items)
    chosen = workers or needed or least
    fewer = fleet(chosen - 1) if chosen > 1 else None
    found, fastest = fleet(chosen), fleet(least + job.items)
    state = engine(chosen)
    warnings = [*_warnings(found, needed, fastest, load)]
    if interactive and load < chosen and state.step > ITL_TARGET:
        warnings.append(
            f"Beside the calls even the fewest rows make gaps between tokens of "
            f"{state.step * 1000:.0f} ms, more than {ITL_TARGET * 1000:.0f}."
        )
    return Plan(job, profile, state, load, found, fewer, fleet(chosen + 1), needed, tuple(warnings))


def _check(profile: EngineProfile, shapes: list[Shape], workers: int) -> None:
    if any(shape.prompt + shape.output > profile.kv_tokens for shape in shapes):
        raise ConfigError(f"The cache holds {profile.kv_tokens:,} tokens: not one item fits.")
    if not 1 <= workers <= _MOST_WORKERS:
        raise ConfigError(f"Workers are 1 to {_MOST_WORKERS:,}.")


def _first(good: Callable[[int], bool], low: int, most: int = _MOST_ITEMS**2) -> int | None:
    """The least number from ``low`` to ``most`` that is good, if with one all above it are."""
    below, high = low - 1, low
    while not good(high):
        if high >= most:
            return None
        below, high = high, min(most, 2 * high)
    while high - below > 1:
        middle = (below + high) // 2
        below, high = (below, middle) if good(middle) else (middle, high)
    return high


def _fleet(
    profile: EngineProfile, job: Job, engine: Callable[[float | None], Steady], workers: int
) -> Fleet:
    """What comes of it with ``engine`` as the state of each worker at so many rows."""
    share = job.items / workers
    state = engine(None)
    if share < state.rows:
        state = engine(max(1.0, share))
    # The longest of the last rows runs on in a batch that grows empty.
    rows = min(share, state.rows)
    last = job.shape.longest(rows * workers) - job.shape.output
    seconds = share / state.items + last * engine(max(1.0, rows * _TAIL)).step
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
