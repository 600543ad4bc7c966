"""Sampling by each row's own rules."""

from typing import Any

import pytest
import torch

from gateway.worker.sampler import Sampler
from gateway.worker.sampling import SamplingParams
from gateway.worker.sequence import Event, Sequence


def _ignore(_: Event) -> None:
    """Nobody reads these."""


def _row(**rules: Any) -> Sequence:
    return Sequence([0, 1], 10, SamplingParams(**rules), None, _ignore)


def _logits(*values: float) -> torch.Tensor:
    return torch.tensor([values])


def _tokens(logits: torch.Tensor, row: Sequence, times: int = 300) -> set[int | None]:
    sampler = Sampler(1)
    return {sampler.sample(logits.clone(), [row])[0].token for _ in range(times)}


def test_temperature_zero_takes_the_best() -> None:
    """Greedy is exact."""
    assert _tokens(_logits(0, 3, 2.9), _row(temperature=0), 5) == {1}


@pytest.mark.parametrize(
    ("rules", "allowed"),
    [
        ({"top_k": 2}, {0, 1}),
        ({"top_p": 0.7}, {0, 1}),
        ({"top_p": 0.46}, {0, 1}),
        ({"top_p": 0.44}, {0}),
        ({"top_p": 0.79, "seed": None}, {0, 1}),
        ({"min_p": 0.5}, {0, 1}),
        ({"top_p": 0.0}, {0}),
        ({}, {0, 1, 2}),
    ],
)
def test_a_forbidden_token_never_comes(rules: dict[str, Any], allowed: set[int]) -> None:
    """top_k, top_p and min_p cut the tail; every allowed token does come."""
    logits = torch.tensor([[0.45, 0.35, 0.2]]).log()
    assert _tokens(logits, _row(**rules)) == allowed


def test_frequencies_follow_the_logits() -> None:
    """The draw is the distribution, not only its support."""
    sampler, row = Sampler(2), _row()
    logits = torch.tensor([[0.7, 0.3]]).log()
    drawn = [sampler.sample(logits.clone(), [row])[0].token for _ in range(3000)]
    assert drawn.count(0) / 3000 == pytest.approx(0.7, abs=0.04)


@pytest.mark.parametrize("share", [0.4, 0.8])
def test_a_nucleus_keeps_its_proportions(share: float) -> None:
    """Inside it, chances are those of the logits, scaled; rows of all kinds in one batch."""
    rows = [_row(top_p=share), _row(temperature=0), _row()]
    logits = torch.tensor([0.3, 0.25, 0.2, 0.15, 0.1]).log().repeat(3, 1)
    sampler = Sampler(3)
    drawn = [sampler.sample(logits.clone(), rows)[0].token for _ in range(2000)]
    allowed = {0.4: {0: 0.545, 1: 0.455}, 0.8: {0: 1 / 3, 1: 0.278, 2: 0.222, 3: 1 / 6}}[share]
    for token in range(5):
        assert drawn.count(token) / 2000 == pytest.approx(allowed.get(token, 0), abs=0.04)


def test_a_seed_gives_the_same_tokens_whatever_stands_beside() -> None:
    """By seed and position alone, in any batch and in any place of it."""
    logits = torch.randn(1, 512, generator=torch.Generator().manual_seed(1))
    found = set()
    for before, after in ((0, 0), (3, 0), (1, 5)):
        rows = [_row() for _ in range(before)]
        rows += [_row(seed=9, top_p=0.6), *(_row(seed=8) for _ in range(after))]
        found.add(Sampler().sample(logits.repeat(len(rows), 1), rows)[before].token)
    assert len(found) == 1


def test_penalties_and_bias_change_the_choice() -> None:
    """Presence and frequency count generated tokens; a bias forces or forbids."""
    row = _row(temperature=0, presence_penalty=1, frequency_penalty=0.5)
    row.output += [1, 1]
    assert Sampler(1).sample(_logits(2.0, 3.9, 0.0), [row])[0].token == 0
    biased = _row(temperature=0, logit_bias={2: 100, 99: 5})
    assert Sampler(1).sample(_logits(0.0, 3.0, 1.0), [biased])[0].token == 2
    repeated = _row(temperature=0, repetition_penalty=4)
    assert Sampler(1).sample(_logits(2.0, 3.0, 1.0), [repeated])[0].token == 2


def test_logprobs_name_the_alternatives() -> None:
    """The chosen token and the likeliest ones, as log probabilities."""
    row = _row(temperature=0, logprobs=2)
    found = Sampler(1).sample(torch.tensor([[0.6, 0.3, 0.1]]).log(), [row])[0].logprob
    assert found is not None
    assert found.logprob == pytest.approx(-0.51, abs=0.01)
    assert [token for token, _ in found.top] == [0, 1]


def test_a_row_that_is_not_a_number_has_no_token() -> None:
    """Its neighbours have theirs."""
    logits = torch.tensor([[1.0, float("nan")], [1.0, 2.0]])
    rows = [_row(), _row(temperature=0)]
    assert [s.token for s in Sampler(1).sample(logits, rows)] == [None, 1]
