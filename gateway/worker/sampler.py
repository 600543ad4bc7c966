"""From logits to tokens, each row by its own rules."""

from collections import Counter
from collections.abc import Sequence as Rows
from dataclasses import dataclass

import torch

from gateway.worker.sequence import Sequence, TokenLogprob

_MIX = 0x9E3779B97F4A7C15
_MASK = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Sampled:
    """A row's token; None when its logits were not numbers."""

    token: int | None
    logprob: TokenLogprob | None = None


class Sampler:
    """Stateless but for the seed of rows that gave none."""

    def __init__(self, seed: int | None = None) -> None:
        self._seeds = torch.Generator()
        if seed is None:
            self._seeds.seed()
        else:
            self._seeds.manual_seed(seed)

    def sample(self, logits: torch.Tensor, rows: Rows[Sequence]) -> list[Sampled]:
        """One token per row of ``logits`` (rows, vocab) float32.

        A row with a seed gives the same token at the same position whatever its neighbours are.
        """
        for at, row in enumerate(rows):
            if row.poisoned:
                logits[at] = float("nan")
            if row.sampling.penalised:
                _penalise(logits[at], row)
        best, tokens = logits.max(-1)
        good = (~best.isnan()).tolist()
        greedy = tokens.tolist()
        return [
            self._row(logits[at], row, greedy[at]) if good[at] else Sampled(None)
            for at, row in enumerate(rows)
        ]

    def _row(self, logits: torch.Tensor, row: Sequence, greedy: int) -> Sampled:
        token = greedy if row.sampling.greedy else self._draw(logits, row)
        if row.sampling.logprobs is None:
            return Sampled(token)
        logs = logits.log_softmax(-1)
        values, others = logs.topk(row.sampling.logprobs)
        top = tuple(zip(others.tolist(), values.tolist(), strict=True))
        return Sampled(token, TokenLogprob(token, float(logs[token]), top))

    def _draw(self, logits: torch.Tensor, row: Sequence) -> int:
        """Gumbel's trick over the allowed tokens: the noise depends on seed and position alone."""
        scaled = logits / row.sampling.temperature
        allowed = _filtered(scaled, row)
        noise = torch.empty_like(allowed).exponential_(generator=self._noise(row))
        return int((allowed.softmax(-1) / noise).argmax())

    def _noise(self, row: Sequence) -> torch.Generator:
        if row.sampling.seed is None:
            return self._seeds
        mixed = (row.sampling.seed * _MIX + row.index * 7919 + row.length) & _MASK
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        return torch.Generator().manual_seed(mixed)


def _filtered(scaled: torch.Tensor, row: Sequence) -> torch.Tensor:
    """Logits with -inf where top_k, min_p or top_p forbid a token; the best one always stays."""
    rules = row.sampling
    if 0 < rules.top_k < scaled.shape[-1]:
        scaled = scaled.masked_fill(scaled < scaled.topk(rules.top_k).values[-1], -torch.inf)
    if rules.min_p > 0:
        chances = scaled.softmax(-1)
        scaled = scaled.masked_fill(chances < rules.min_p * chances.max(), -torch.inf)
    if rules.top_p < 1:
        chances, order = scaled.softmax(-1).sort(descending=True)
        before = chances.cumsum(-1) - chances
        drop = before > rules.top_p
        drop[0] = False
        scaled = scaled.masked_fill(torch.zeros_like(drop).scatter(0, order, drop), -torch.inf)
    return scaled


def _penalise(logits: torch.Tensor, row: Sequence) -> None:
    """Presence and frequency as OpenAI defines them, over generated tokens; bias last."""
    rules = row.sampling
    if row.output:
        seen = Counter(row.output)
        at = torch.tensor(list(seen))
        counts = torch.tensor(list(seen.values()), dtype=logits.dtype)
        logits[at] -= rules.presence_penalty + rules.frequency_penalty * counts
    if rules.repetition_penalty != 1:
        at = torch.tensor(sorted({*row.prompt, *row.output}))
        values = logits[at]
        shrunk = torch.where(
            values > 0, values / rules.repetition_penalty, values * rules.repetition_penalty
        )
        logits[at] = shrunk
    for token, bias in rules.logit_bias.items():
        if 0 <= token < logits.shape[-1]:
            logits[token] += bias
