"""Step times as published."""

import math
from dataclasses import replace
from typing import Any

import pytest

from gateway.core.errors import ConfigError
from gateway.simulator.profile import PROFILES, EngineProfile, profile_named


def test_small_steps_cost_the_weights() -> None:
    """Below the knee a token more costs nothing but its cache; above it, its computation."""
    engine = EngineProfile("x", 10.0, 0.1, 0.001, 1.0, 10_000)
    assert engine.seconds(1, 0, 0) == engine.seconds(100, 0, 0) == pytest.approx(0.011)
    assert engine.seconds(100, 0, 100) == pytest.approx(0.021)
    assert engine.seconds(1, 1000, 0) == pytest.approx(0.012)


def test_the_7b_profile_gives_the_published_speed() -> None:
    """One row of a 7B model on an A100 decodes about 93 tokens per second at short context."""
    assert 1 / profile_named("a100-7b").seconds(1, 256, 0) == pytest.approx(93, rel=0.02)


def test_half_the_speed_takes_twice_the_time() -> None:
    """Every term scales."""
    engine = PROFILES["h200-8b"]
    slow = engine.faster(0.5)
    assert slow.seconds(20, 30_000, 700) == pytest.approx(2 * engine.seconds(20, 30_000, 700))


def test_every_profile_has_a_source_and_a_price() -> None:
    """Nobody has to guess where a figure comes from."""
    assert all(profile.source and profile.price for profile in PROFILES.values())


@pytest.mark.parametrize(
    "changes",
    [
        {"kv_tokens": 0},
        {"max_num_seqs": 0},
        {"max_num_batched_tokens": 8},
        {"max_num_batched_tokens": 10**400},
        {"a": math.nan},
        {"b": math.inf},
        {"c": -1.0},
        {"a": 0.0, "b": 0.0, "c": 0.0, "h": 1e-300},
        {"price": math.inf},
        {"price": -1.0},
    ],
)
def test_an_engine_that_cannot_run_is_refused(changes: dict[str, Any]) -> None:
    """It would stand still for ever."""
    with pytest.raises(ConfigError):
        replace(PROFILES["a100-8b"], **changes)


def test_a_wrong_name_lists_the_right_ones() -> None:
    """The message helps."""
    with pytest.raises(ConfigError, match="a100-8b"):
        profile_named("a100")
