"""Flags that reach a target."""

import time

import pytest

from gateway.pacing.advice import (
    EngineFlags,
    OfflineLoad,
    advise,
    full_step,
    offline_tokens,
)
from gateway.pacing.step_time import StepTime

H200 = StepTime(0.00475, 0.000055, 0.00000002, 0.0000225)
LOAD = OfflineLoad(2572, 303, 830_000)
FLAGS = EngineFlags(256, 8192)


def test_a_smaller_budget_reaches_the_target_at_a_small_cost() -> None:
    """A full step of 8,192 tokens takes 0.2 s there; 50 ms cost a few percent of throughput."""
    advice = advise(H200, LOAD, FLAGS, 0.05)
    assert advice.gap_now > 0.15
    assert advice.gap_then <= 0.05
    assert advice.reached
    assert 1024 <= advice.flags.max_num_batched_tokens <= 2048
    assert 0 < advice.cost < 0.1


def test_the_tighter_the_target_the_dearer() -> None:
    """Gaps and throughput fall together."""
    found = [advise(H200, LOAD, FLAGS, target) for target in (0.1, 0.05, 0.025, 0.0125)]
    costs = [advice.cost for advice in found]
    assert costs == sorted(costs)
    assert all(
        a.gap_then <= target for a, target in zip(found, (0.1, 0.05, 0.025, 0.0125), strict=True)
    )


def test_flags_that_are_good_enough_stay() -> None:
    """Only the priority policy is added: it costs nothing."""
    advice = advise(H200, LOAD, EngineFlags(256, 1024), 0.05)
    assert advice.flags == EngineFlags(256, 1024, priority=True)
    assert advice.cost == 0
    assert advice.command() == (
        "--max-num-seqs 256 --max-num-batched-tokens 1024 --scheduling-policy priority"
    )


def test_a_target_that_no_flags_reach_is_said() -> None:
    """One row alone takes longer."""
    advice = advise(H200, LOAD, FLAGS, 0.004)
    assert not advice.reached
    assert advice.flags.max_num_seqs == 1


def test_every_slot_has_a_token_of_budget() -> None:
    """As engines want it."""
    for target in (0.006, 0.01, 0.02):
        flags = advise(H200, LOAD, FLAGS, target).flags
        assert flags.max_num_seqs <= flags.max_num_batched_tokens


def test_throughput_and_gaps_are_those_of_the_fit() -> None:
    """By hand: 64 slots, a budget that does not bind."""
    flags = EngineFlags(64, 8192)
    context = 2572 + 303 / 2
    decode = 0.00475 + 64 * 0.000055 + 64 * context * 2e-8
    assert full_step(H200, LOAD, flags) == pytest.approx(decode + (8192 - 64) * 2.25e-5)
    seconds = decode + 64 * 2572 / 303 * 2.25e-5
    assert offline_tokens(H200, LOAD, flags) == pytest.approx(64 / (303 * seconds) * 2875)


def test_budgets_without_measure_cost_no_time() -> None:
    """Few are tried far up, all that matter further down: the same flags come out."""
    begun = time.process_time()
    found = advise(H200, LOAD, EngineFlags(65_536, 1_048_576), 0.05)
    assert time.process_time() - begun < 1.0
    assert found.flags == advise(H200, LOAD, EngineFlags(65_536, 65_536), 0.05).flags
    assert found.reached
