"""The steady state by formula and by simulation."""

import math
from dataclasses import replace

import pytest

from gateway.bench.planning.steady import Shape, steady
from gateway.core.errors import ConfigError
from gateway.simulator.profile import PROFILES

A100 = PROFILES["a100-8b"]


def test_speed_grows_with_the_batch_and_less_and_less() -> None:
    """Known figures of an 8B model with 1,024 tokens of context on an A100."""
    found = [steady(A100, Shape(1, 2046), rows) for rows in (1, 16, 64)]
    speeds = [state.rows / state.step for state in found]
    assert speeds == pytest.approx([83, 1197, 3560], rel=0.05)


@pytest.mark.parametrize(
    ("shape", "changes", "limit"),
    [
        (Shape(100, 900), {}, "slots"),
        (Shape(100, 900), {"kv_tokens": 20_000}, "cache"),
        (Shape(4000, 20), {}, "step budget"),
    ],
)
def test_the_limit_is_what_is_used_up_first(
    shape: Shape, changes: dict[str, int], limit: str
) -> None:
    """Slots, cache or the budget of a step."""
    profile = replace(A100, kv_tokens=changes.get("kv_tokens", A100.kv_tokens))
    assert steady(profile, shape).limit == limit


def test_what_it_is_bound_by_is_where_the_time_goes() -> None:
    """Prompts compute; long contexts read the cache; a lone row reads the weights."""
    assert steady(A100, Shape(4000, 20)).bound == "compute-bound"
    assert steady(PROFILES["a100-7b"], Shape(200, 2000)).bound == "KV-bound"
    lone = steady(A100, Shape(10, 500), 1)
    assert (lone.bound, lone.limit) == ("weight-bound", "asked")
    assert sum(lone.spent.values()) == pytest.approx(1)


def test_long_answers_are_seen_more_often() -> None:
    """The cache of uneven lengths is larger, and its longest far above the mean."""
    assert Shape(100, 200).context == 200
    assert Shape(100, 200, 1.0).context == 300
    assert Shape(100, 200).longest(50) == pytest.approx(200)
    assert Shape(100, 200, 1.0).longest(1) == 200
    assert 800 < Shape(100, 200, 1.0).longest(50) < 1200


@pytest.mark.parametrize(
    "numbers",
    [
        (0, 5, 0),
        (5, 0.5, 0),
        (math.nan, 5, 0),
        (5, math.inf, 0),
        (5, 5, -1),
        (5, 5, math.nan),
        (5, 5, 1e200),
    ],
)
def test_a_shape_is_of_numbers_that_can_be(numbers: tuple[float, float, float]) -> None:
    """Lengths of a token at least, and a variation that can be reckoned with."""
    with pytest.raises(ConfigError):
        Shape(*numbers)


def test_the_longest_of_very_many_is_a_number() -> None:
    """It grows with their number, and slowly."""
    found = [Shape(100, 200, 0.5).longest(rows) for rows in (1e3, 1e12, 1e20, 1e30)]
    assert found == sorted(found)
    assert found[-1] < 200 * 1000
