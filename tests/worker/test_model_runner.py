"""Plans on the tiny model."""

import pytest

from gateway.worker.model_runner import ModelRunner
from gateway.worker.models.loading import tiny_llama
from gateway.worker.options import Faults
from gateway.worker.sampling import SamplingParams
from gateway.worker.scheduler import StepPlan
from gateway.worker.sequence import Sequence


def _sequence(prompt: list[int], slot: int) -> Sequence:
    sequence = Sequence(prompt, 20, SamplingParams(temperature=0), None, print)
    sequence.slot = slot
    return sequence


def _generate(runner: ModelRunner, sequence: Sequence, pieces: list[int], tokens: int) -> list[int]:
    for piece in pieces:
        results = runner.run(StepPlan((), ((sequence, piece),)))
        sequence.computed += piece
    while True:
        for _, sampled in results:
            assert sampled.token is not None
            sequence.output.append(sampled.token)
        if len(sequence.output) >= tokens:
            return sequence.output
        results = runner.run(StepPlan((sequence,), ()))


def test_a_prompt_in_pieces_is_the_same_prompt() -> None:
    """However it is cut, the tokens that follow are the same."""
    runner = ModelRunner(tiny_llama(128), 4, 128, Faults())
    prompt = list(range(20, 60))
    whole = _generate(runner, _sequence(prompt, 0), [40], 12)
    assert _generate(runner, _sequence(prompt, 1), [1, 20, 19], 12) == whole
    assert _generate(runner, _sequence(prompt, 3), [33, 7], 12) == whole


def test_a_plan_may_be_run_again() -> None:
    """A step that is repeated gives the same token."""
    runner = ModelRunner(tiny_llama(128), 2, 128, Faults())
    sequence = _sequence([5, 6, 7], 0)
    first = runner.run(StepPlan((), ((sequence, 3),)))
    assert runner.run(StepPlan((), ((sequence, 3),)))[0][1] == first[0][1]


def test_an_injected_memory_fault_is_one() -> None:
    """More rows than allowed fail before anything is computed."""
    runner = ModelRunner(tiny_llama(128), 2, 128, Faults(oom_rows=1))
    rows = tuple(_sequence([5], slot) for slot in range(2))
    with pytest.raises(MemoryError):
        runner.run(StepPlan((), tuple((row, 1) for row in rows)))
