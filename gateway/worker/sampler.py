"""From logits to tokens, each row by its own rules, in few passes over the vocabulary."""

import random
from collections import Counter
from collections.abc import Sequence as Rows
from dataclasses import dataclass

import torch

from gateway.worker.sequence import Sequence, TokenLogprob

_GOLDEN = 0x9E3779B97F4A7C15
_MASK = 2**64 - 1
_ATTEMPTS = 24
_SMALL_NUCLEUS = 0.5


@dataclass(frozen=True, slots=True)
class Sampled:
    """A row's token; None when its logits were not numbers."""

    token: int | None
    logprob: TokenLogprob | None = None


class Sampler:
    """Stateless but for the chances of rows that gave no seed."""

    def __init__(self, seed: int | None = None) -> None:
        self._unseeded = random.Random(seed)  # noqa: S311 - no secrets

    def sample(self, logits: torch.Tensor, rows: Rows[Sequence]) -> list[Sampled]:
        """One token per row of ``logits`` (rows, vocab).

        A row with a seed gives the same token at the same position whatever its neighbours are.
        """
        if any(row.poisoned or row.sampling.penalised for row in rows):
            logits = logits.float()
            _change(logits, rows)
        best, tokens = _argmax(logits)
        drawn = [at for at, row in enumerate(rows) if not row.sampling.greedy]
        if drawn:
            chosen = self._draw(logits[drawn].float(), [rows[at] for at in drawn])
            for at, token in zip(drawn, chosen, strict=True):
                tokens[at] = token
        good = best.isfinite().tolist()
        return [
            _sampled(logits, at, row, tokens[at]) if good[at] else Sampled(None)
            for at, row in enumerate(rows)
        ]

    def _draw(self, logits: torch.Tensor, rows: Rows[Sequence]) -> list[int]:
        """Draw by inverting the distribution: one chance per row, from seed and position alone.

        A token outside a row's nucleus is drawn again: cheaper than to sort for each token.
        """
        temperatures = [row.sampling.temperature for row in rows]
        scaled = logits.div_(_beside(logits, temperatures)[:, None])
        weights = scaled.sub_(scaled.amax(-1, keepdim=True)).exp_()
        for at, row in enumerate(rows):
            if row.sampling.filtered:
                _filter(weights[at], row)
        found, pending = [0] * len(rows), list(range(len(rows)))
        for attempt in range(_ATTEMPTS):
            part = weights if len(pending) == len(rows) else weights[pending]
            chances = [self._chance(rows[at], attempt) for at in pending]
            tokens = _inverted(part, _beside(part, chances))
            inside = _inside(part, tokens, [rows[at].sampling.top_p for at in pending])
            for at, token in zip(pending, tokens, strict=True):
                found[at] = token
            pending = [at for at, good in zip(pending, inside, strict=True) if not good]
            if not pending:
                return found
        for at in pending:
            found[at] = int(weights[at].argmax())
        return found

    def _chance(self, row: Sequence, attempt: int) -> float:
        """A number from 0 to below 1."""
        if row.sampling.seed is None:
            return self._unseeded.random()
        return _mixed(row.sampling.seed, row.index, row.length, attempt)


def _sampled(logits: torch.Tensor, at: int, row: Sequence, token: int) -> Sampled:
    if row.sampling.logprobs is None:
        return Sampled(token)
    logs = logits[at].float().log_softmax(-1)
    values, others = logs.topk(row.sampling.logprobs)
    top = tuple(zip(others.tolist(), values.tolist(), strict=True))
    return Sampled(token, TokenLogprob(token, float(logs[token]), top))


def _argmax(logits: torch.Tensor) -> tuple[torch.Tensor, list[int]]:
    """Highest logit of each row and where it is, in two levels: the second reads little."""
    rows, vocab = logits.shape
    width = _block(vocab)
    blocks = logits.view(rows, -1, width)
    highest = blocks.amax(-1)
    best, block = highest.max(-1)
    within = blocks[torch.arange(rows, device=logits.device), block].argmax(-1)
    return best, (block * width + within).tolist()


def _inverted(weights: torch.Tensor, chances: torch.Tensor) -> list[int]:
    """The token at which the running sum of ``weights`` (rows, vocab) passes its chance's share."""
    rows, vocab = weights.shape
    width = _block(vocab)
    blocks = weights.view(rows, -1, width)
    running = blocks.sum(-1).double().cumsum(-1)
    goal = chances.double()[:, None] * running[:, -1:]
    block = torch.searchsorted(running, goal, right=True).clamp_(max=running.shape[1] - 1)
    before = torch.where(block > 0, running.gather(1, (block - 1).clamp_(min=0)), 0.0)
    inner = blocks[torch.arange(rows, device=weights.device), block[:, 0]].double()
    passed = inner.cumsum(-1) > goal - before
    # Rounding may leave the goal just past the block: its likeliest token is taken then.
    within = torch.where(passed.any(-1), passed.int().argmax(-1), inner.argmax(-1))
    return (block[:, 0] * width + within).tolist()


def _block(vocab: int) -> int:
    """A divisor of ``vocab`` near its root, so that both levels are short."""
    return next((size for size in (256, 192, 128, 64, 32, 16) if vocab % size == 0), vocab)


def _filter(weights: torch.Tensor, row: Sequence) -> None:
    """Set to 0 what top_k, min_p or a small top_p forbid; the best token always stays."""
    rules = row.sampling
    if rules.min_p > 0:
        weights[weights < rules.min_p] = 0
    if 0 < rules.top_k < weights.shape[0]:
        weights[weights < weights.topk(rules.top_k).values[-1]] = 0
    if rules.top_p < _SMALL_NUCLEUS:
        values, places = weights.sort(descending=True)
        kept = (values.cumsum(-1) - values) < rules.top_p * float(values.sum())
        kept[0] = True
        weights.zero_().index_copy_(0, places[kept], values[kept])


def _inside(weights: torch.Tensor, tokens: Rows[int], shares: Rows[float]) -> list[bool]:
    """Whether each row's token is among the likeliest that together have the row's share."""
    if all(share == 1 or share < _SMALL_NUCLEUS for share in shares):
        return [True] * len(tokens)
    own = weights.gather(1, torch.tensor(tokens, device=weights.device)[:, None])
    above = torch.where(weights > own, weights, 0.0).sum(-1)
    inside: list[bool] = (above < _beside(weights, shares) * weights.sum(-1)).tolist()
    return [good or share < _SMALL_NUCLEUS for good, share in zip(inside, shares, strict=True)]


def _beside(tensor: torch.Tensor, values: Rows[float]) -> torch.Tensor:
    """Numbers on the device of ``tensor``."""
    return torch.tensor(values, dtype=torch.float32, device=tensor.device)


def _mixed(*parts: int) -> float:
    """Hash of some integers to a number from 0 to below 1 (the finaliser of splitmix64)."""
    state = 0
    for part in parts:
        state = (state + part + _GOLDEN) & _MASK
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & _MASK
        state ^= state >> 31
    return (state >> 11) / 2**53


def _change(logits: torch.Tensor, rows: Rows[Sequence]) -> None:
    """Penalties, bias and injected faults, in place."""
    for at, row in enumerate(rows):
        if row.poisoned:
            logits[at] = float("nan")
        if row.sampling.penalised:
            _penalise(logits[at], row)


def _penalise(logits: torch.Tensor, row: Sequence) -> None:
    """Presence and frequency as OpenAI defines them, over generated tokens; bias last."""
    rules = row.sampling
    if row.output:
        seen = Counter(row.output)
        at = torch.tensor(list(seen), device=logits.device)
        counts = _beside(logits, list(seen.values()))
        logits[at] -= rules.presence_penalty + rules.frequency_penalty * counts
    if rules.repetition_penalty != 1:
        at = torch.tensor(sorted({*row.prompt, *row.output}), device=logits.device)
        values = logits[at]
        shrunk = torch.where(
            values > 0, values / rules.repetition_penalty, values * rules.repetition_penalty
        )
        logits[at] = shrunk
    for token, bias in rules.logit_bias.items():
        if 0 <= token < logits.shape[-1]:
            logits[token] += bias
