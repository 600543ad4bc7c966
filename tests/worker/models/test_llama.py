"""The forward pass against its definition."""

import torch

from gateway.worker.kv_cache import KVCache
from gateway.worker.models.llama import Forward, PromptPart, SlotRange
from gateway.worker.models.loading import tiny_llama


def _cache() -> KVCache:
    return KVCache(layers=2, slots=2, kv_heads=2, context=64, head_dim=8, dtype=torch.float32)


def _prompt(tokens: list[int]) -> Forward:
    count = len(tokens)
    return Forward(
        torch.tensor(tokens),
        torch.zeros(count, dtype=torch.long),
        torch.arange(count),
        (),
        (PromptPart(0, 0, 0, count),),
        torch.tensor([count - 1]),
    )


def test_decoding_a_token_is_reading_one_more() -> None:
    """The cache plus one token gives the logits of the whole text."""
    model, tokens = tiny_llama(64), [5, 9, 200, 31, 7]
    whole = model.forward(_prompt(tokens), _cache())
    cache = _cache()
    model.forward(_prompt(tokens[:-1]), cache)
    mask = torch.full((1, 1, 1, 32), -torch.inf)
    mask[..., : len(tokens)] = 0
    last = Forward(
        torch.tensor(tokens[-1:]),
        torch.tensor([0]),
        torch.tensor([len(tokens) - 1]),
        (SlotRange(0, 0, 1, 32, mask),),
        (),
        torch.tensor([0]),
    )
    assert torch.allclose(model.forward(last, cache), whole, atol=1e-4)


def test_the_past_does_not_see_the_future() -> None:
    """A later token changes nothing before it."""
    model = tiny_llama(64)
    first = _prompt([5, 9, 200])
    both = [_prompt([5, 9, 200]), _prompt([5, 9, 17])]
    wanted = torch.tensor([1])
    logits = [
        model.forward(Forward(f.tokens, f.slots, f.positions, (), f.prompts, wanted), _cache())
        for f in both
    ]
    assert torch.allclose(logits[0], logits[1], atol=1e-5)
    assert first.wanted.tolist() == [2]
