"""A step on a device is the step that the CPU's runner makes."""

import pytest
import torch

from gateway.core.errors import ConfigError
from gateway.worker.device.runner import PagedRunner
from gateway.worker.engine import Runner
from gateway.worker.model_runner import ModelRunner
from gateway.worker.models.llama import Llama
from gateway.worker.models.loading import on_device
from gateway.worker.models.shapes import random_llama, shape_named
from gateway.worker.options import Faults
from gateway.worker.sampling import SamplingParams
from gateway.worker.scheduler import StepPlan
from gateway.worker.sequence import Sequence

NO_GPU = not torch.cuda.is_available()
DEVICES = [
    "cpu",
    pytest.param("cuda", marks=pytest.mark.skipif(NO_GPU, reason="torch sees no GPU here")),
]
CONTEXT = 256
STEPS = 12


@pytest.fixture(scope="module")
def model() -> Llama:
    """Random weights in float32."""
    shape, inner = shape_named("tiny", CONTEXT)
    return random_llama(shape, inner, "cpu", torch.float32)


def _sequence(prompt: list[int], slot: int) -> Sequence:
    sequence = Sequence(prompt, 60, SamplingParams(temperature=0), None, print)
    sequence.slot = slot
    return sequence


def _tokens(runner: Runner, told: list[list[int]] | None = None) -> list[list[int]]:
    """What two sequences get; each goes on with the tokens that it is ``told``, if any."""
    rows = [_sequence(list(range(20, 160)), 0), _sequence(list(range(7, 50)), 2)]
    found: list[list[int]] = [[], []]
    first, second = rows
    plans = [StepPlan((), ((first, 100),)), StepPlan((), ((first, 40), (second, 43)))]
    plans += [StepPlan((first, second), ())] * STEPS
    for plan in plans:
        results = runner.run(plan)
        for sequence, count in plan.prompts:
            sequence.computed += count
        for sequence, sampled in results:
            assert sampled.token is not None
            number = rows.index(sequence)
            found[number].append(sampled.token)
            at = len(sequence.output)
            sequence.output.append(sampled.token if told is None else told[number][at])
    return found


@pytest.mark.parametrize("device", DEVICES)
def test_tokens_are_those_of_the_other_runner(model: Llama, device: str) -> None:
    """A prompt in two parts, two prompts at once, rows decoded together; nearly so on a GPU."""
    expected = _tokens(ModelRunner(model, 3, CONTEXT, Faults()))
    found = _tokens(PagedRunner(on_device(model, device), 3, CONTEXT, Faults(), pages=9), expected)
    pairs = [
        (one, two)
        for a, b in zip(found, expected, strict=True)
        for one, two in zip(a, b, strict=True)
    ]
    equal = sum(one == two for one, two in pairs)
    assert len(pairs) == 2 * STEPS + 2
    assert equal == len(pairs) if device == "cpu" else equal >= 0.9 * len(pairs)


@pytest.mark.parametrize("device", DEVICES)
def test_a_plan_may_be_run_again(model: Llama, device: str) -> None:
    """A step that is repeated gives the same token."""
    runner = PagedRunner(on_device(model, device), 2, CONTEXT, Faults(), pages=9)
    sequence = _sequence([5, 6, 7], 0)
    first = runner.run(StepPlan((), ((sequence, 3),)))
    assert runner.run(StepPlan((), ((sequence, 3),)))[0][1] == first[0][1]


@pytest.mark.parametrize("device", DEVICES)
def test_rows_are_drawn_by_their_own_rules(model: Llama, device: str) -> None:
    """Seeds, nuclei, penalties and log probabilities work where the logits are."""
    runner = PagedRunner(on_device(model, device), 2, CONTEXT, Faults(), pages=9)
    sampling = SamplingParams(
        seed=3, top_p=0.8, top_k=20, presence_penalty=1, repetition_penalty=1.1, logprobs=2
    )
    row = Sequence([5, 6, 7], 60, sampling, None, print)
    row.slot = 0
    row.output.append(9)
    plan = StepPlan((), ((row, 4),))
    (_, first), (_, again) = runner.run(plan)[0], runner.run(plan)[0]
    assert first == again
    assert first.logprob is not None
    assert len(first.logprob.top) == 2


def test_an_injected_memory_fault_is_one(model: Llama) -> None:
    """As in the other runner."""
    runner = PagedRunner(model, 2, CONTEXT, Faults(oom_rows=1), pages=9)
    with pytest.raises(MemoryError):
        runner.run(StepPlan((), tuple((_sequence([5], slot), 1) for slot in range(2))))


def test_too_small_a_memory_is_refused(model: Llama) -> None:
    """A sequence of the longest context must fit."""
    with pytest.raises(ConfigError, match="256"):
        PagedRunner(model, 2, CONTEXT, Faults(), pages=4)
