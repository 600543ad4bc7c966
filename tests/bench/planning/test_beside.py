"""What is left beside people, by formula and under the dispatcher's own pacer."""

from dataclasses import replace
from itertools import islice
from statistics import fmean, pstdev
from typing import Any

import pytest

from gateway.bench.coserve.arms import Arm, Scene, run_arm
from gateway.bench.coserve.rows import Backlog
from gateway.bench.planning.beside import People, beside
from gateway.bench.planning.plan import Interactive, Job, make_plan
from gateway.bench.planning.steady import Shape, steady
from gateway.bench.workload.trace import SUMMARIES, Lengths, backlog
from gateway.core.load import ITL_TARGET
from gateway.pacing.shared import Caps
from gateway.simulator.profile import PROFILES

A100 = PROFILES["a100-8b"]
CHAT = Shape(1180, 252, 1.27)
SUMMARY = Shape(2572, 303, 1.46)
SHORT = Lengths(499, 0.5, 201, 0.5)
LONG = Lengths(4000, 0.3, 30, 0.5)


@pytest.mark.parametrize(
    ("profile", "changes", "engines", "rate", "lengths", "items"),
    [
        ("a100-8b", {}, 2, 5.04, SUMMARIES, 2000),
        ("a100-8b", {}, 2, 2.52, SUMMARIES, 2000),
        ("a100-8b", {}, 2, 8.0, SUMMARIES, 1500),
        ("a100-8b", {}, 2, 5.04, SHORT, 4000),
        ("a100-8b", {"max_num_batched_tokens": 2048}, 2, 5.04, SUMMARIES, 2000),
        ("h200-8b", {}, 1, 5.04, SUMMARIES, 2000),
        ("h100-7b", {}, 2, 5.04, LONG, 2000),
    ],
)
def test_the_finish_beside_people_is_within_15_percent_of_the_simulator(
    profile: str, changes: dict[str, Any], engines: int, rate: float, lengths: Lengths, items: int
) -> None:
    """Calls of a chat, rows under the pacer of the dispatcher; what binds is another each time."""
    rows = list(islice(backlog(lengths, 1), items))
    prompts, outputs = zip(*rows, strict=True)
    shape = Shape(fmean(prompts), fmean(outputs), pstdev(outputs) / fmean(outputs))
    engine = replace(PROFILES[profile], **changes)
    plan = make_plan(engine, Job(items, shape), Interactive(rate, CHAT), engines)
    scene = Scene(engine, engines=engines, rate=rate, lead=0.0, seconds=1.3 * plan.fleet.seconds)
    record = run_arm(Arm("headway", caps=Caps()), scene, 1, Backlog(rows))
    assert record.rows == items
    assert plan.fleet.seconds == pytest.approx(record.finished[0], rel=0.15)


@pytest.mark.parametrize(
    ("profile", "shape", "changes", "limit"),
    [
        ("a100-8b", SUMMARY, {}, "latency"),
        ("a100-8b", SUMMARY, {"kv_tokens": 40_000}, "cache"),
        ("h200-8b", Shape(10, 2000), {"max_num_seqs": 64}, "slots"),
        ("h200-8b", Shape(4000, 30), {}, "first tokens"),
    ],
)
def test_the_limit_is_what_is_too_much_first(
    profile: str, shape: Shape, changes: dict[str, Any], limit: str
) -> None:
    """The gap between tokens, the cache, slots, or the wait for first tokens."""
    found = beside(replace(PROFILES[profile], **changes), shape, People(2.5, CHAT))
    assert found.limit == limit
    assert sum(found.spent.values()) == pytest.approx(1)
    assert found.step < ITL_TARGET


def test_more_calls_leave_less() -> None:
    """Each call a second more costs rows, and nobody waits longer for a token."""
    found = [beside(A100, SUMMARY, People(rate, CHAT)) for rate in (0.1, 1, 2.5, 4)]
    items = [state.items for state in found]
    assert items == sorted(items, reverse=True)
    assert all(state.step < ITL_TARGET for state in found)
    assert items[0] < steady(A100, SUMMARY).items


def test_the_fewest_rows_run_even_where_people_fill_the_engine() -> None:
    """As the pacer lets them, whatever the gap."""
    found = beside(A100, SUMMARY, People(9.0, CHAT))
    assert found.rows == pytest.approx(4)
    assert found.step > ITL_TARGET


def test_fewer_rows_than_there_is_room_for_are_faster() -> None:
    """Of a small job each row ends sooner."""
    full, few = (beside(A100, SUMMARY, People(2.5, CHAT), rows) for rows in (None, 2.0))
    assert (few.limit, few.rows) == ("asked", 2)
    assert few.step < full.step
    assert few.items < full.items
