"""Plans hold in the simulated engine."""

import math
from itertools import islice

import pytest

from gateway.bench.planning.plan import Interactive, Job, make_plan
from gateway.bench.planning.steady import Shape
from gateway.bench.workload.trace import CHAT, SUMMARIES, Lengths, backlog
from gateway.core.errors import ConfigError
from gateway.simulator.engine import Engine
from gateway.simulator.profile import PROFILES, EngineProfile
from gateway.simulator.sequence import Sequence

A100 = PROFILES["a100-8b"]


def _simulated(profile: EngineProfile, rows: list[tuple[int, int]]) -> float:
    engine, seconds = Engine(profile), 0.0
    for prompt, output in rows:
        engine.add(Sequence(prompt, output))
    while not engine.idle:
        seconds += engine.step().seconds
    return seconds


@pytest.mark.parametrize(
    ("profile", "lengths"),
    [
        ("a100-8b", SUMMARIES),
        ("a100-7b", SUMMARIES),
        ("h200-8b", Lengths(216, 0.32, 395, 0.9)),
        ("h100-7b", CHAT),
        ("h200-8b", Lengths(4000, 0.3, 30, 0.5)),
        ("a100-8b", Lengths(500, 0.0, 500, 0.0)),
    ],
)
def test_the_finish_is_within_15_percent_of_the_simulated_engine(
    profile: str, lengths: Lengths
) -> None:
    """Six shapes, two workers, real spreads of lengths."""
    rows = list(islice(backlog(lengths, 1), 4000))
    found = max(_simulated(PROFILES[profile], rows[at::2]) for at in range(2))
    shape = Shape(lengths.prompt, lengths.output, math.sqrt(math.exp(lengths.output_sigma**2) - 1))
    plan = make_plan(PROFILES[profile], Job(4000, shape), workers=2)
    assert plan.fleet.seconds == pytest.approx(found, rel=0.15)


def test_enough_workers_and_one_fewer_is_late() -> None:
    """The number is the least that leaves room for trouble."""
    plan = make_plan(A100, Job(50_000, Shape(2572, 303), 3600))
    assert plan.fleet.workers == plan.needed
    assert plan.fleet.in_time
    assert plan.fewer is not None
    assert plan.fewer.seconds > 0.85 * 3600
    assert plan.more.seconds < plan.fleet.seconds
    assert not plan.warnings


def test_too_few_workers_are_warned_of() -> None:
    """And the right number is said."""
    plan = make_plan(A100, Job(50_000, Shape(2572, 303), 3600), workers=2)
    assert not plan.fleet.in_time
    assert f"{plan.needed} are needed" in plan.warnings[0]


@pytest.mark.parametrize(
    ("shape", "deadline"), [(Shape(100, 4000), 20), (Shape(100, 2000, 1.0), 60)]
)
@pytest.mark.parametrize("workers", [None, 3])
def test_a_deadline_shorter_than_the_longest_answer_cannot_be_met(
    shape: Shape, deadline: float, workers: int | None
) -> None:
    """However many workers there are, and no number is said to be needed."""
    plan = make_plan(A100, Job(100, shape, deadline), workers=workers)
    assert plan.needed is None
    assert "any number" in plan.warnings[0]
    assert not any("are needed" in text for text in plan.warnings)


@pytest.mark.parametrize("deadline", [100, 120, 150])
def test_what_is_needed_is_enough(deadline: float) -> None:
    """Also where it is the last answers that decide: with as many there is no warning."""
    job = Job(1000, Shape(100, 1000, 0.5), deadline)
    needed = make_plan(A100, job).needed
    assert needed is not None
    assert make_plan(A100, job, workers=needed).fleet.in_time
    short = make_plan(A100, job, workers=1)
    assert short.fleet.in_time or f"{needed} are needed" in short.warnings[0]


def test_interactive_calls_take_workers() -> None:
    """Full chat load on two engines takes about a third of each; too much ends no job."""
    beside = Interactive(5, Shape(1180, 252))
    plan = make_plan(A100, Job(50_000, Shape(2572, 303), 3600), beside)
    assert 0.5 < plan.load < 0.9
    assert plan.fleet.workers > make_plan(A100, plan.job).fleet.workers
    crowded = make_plan(A100, plan.job, Interactive(50, Shape(1180, 252)), workers=3)
    assert crowded.fleet.seconds == math.inf
    assert any("never end" in text for text in crowded.warnings)


def test_gaps_that_people_will_notice_are_warned_of() -> None:
    """Too many calls for two engines and a row; on four there is room for both."""
    job, calls = Job(1000, Shape(2572, 303)), Interactive(14, Shape(1180, 252, 1.27))
    assert any("gaps between tokens" in text for text in make_plan(A100, job, calls, 2).warnings)
    assert not make_plan(A100, job, calls, 4).warnings


def test_cost_is_time_times_price() -> None:
    """Two workers of 2 an hour."""
    plan = make_plan(A100, Job(50_000, Shape(2572, 303)), workers=2)
    assert plan.fleet.cost == pytest.approx(plan.fleet.seconds / 3600 * 2 * A100.price)


@pytest.mark.parametrize("items", [0, 10**32])
@pytest.mark.parametrize("deadline", [None, 3600])
def test_a_job_has_items_that_can_be_counted(items: int, deadline: float | None) -> None:
    """None, or more than there are, is nonsense."""
    with pytest.raises(ConfigError):
        Job(items, Shape(10, 10), deadline)


@pytest.mark.parametrize("deadline", [0.0, -1.0, 1e-300, math.inf, math.nan])
def test_a_deadline_is_a_time_to_come(deadline: float) -> None:
    """Not now, and not never."""
    with pytest.raises(ConfigError):
        Job(5, Shape(10, 10), deadline)


@pytest.mark.parametrize("rate", [0.0, -1.0, math.inf, math.nan])
def test_calls_have_a_rate(rate: float) -> None:
    """A number above 0."""
    with pytest.raises(ConfigError):
        Interactive(rate, Shape(10, 10))


def test_what_does_not_fit_is_refused() -> None:
    """Items longer than the cache, and more workers than there are."""
    with pytest.raises(ConfigError, match="fits"):
        make_plan(A100, Job(1, Shape(500_000, 10)))
    with pytest.raises(ConfigError, match="Workers"):
        make_plan(A100, Job(1, Shape(10, 10)), workers=10**400)


@pytest.mark.parametrize("items", [1, 7, 10**12])
@pytest.mark.parametrize("deadline", [1.0, 3600.0, 1e9, None])
@pytest.mark.parametrize("cv", [0.0, 0.5, 20.0])
def test_every_job_within_bounds_has_a_plan(items: int, deadline: float | None, cv: float) -> None:
    """The largest and the smallest."""
    plan = make_plan(A100, Job(items, Shape(100, 100, cv), deadline))
    assert plan.fleet.workers >= 1
    assert 0 < plan.fleet.seconds < math.inf
