"""The paged model against the one over slots."""

import torch

from gateway.worker.device.model import Batch, PagedLlama
from gateway.worker.device.plain import PlainOps
from gateway.worker.kv_cache import KVCache
from gateway.worker.models.llama import Forward, PromptPart
from gateway.worker.models.shapes import random_llama, shape_named
from gateway.worker.pages import PAGE


def test_logits_are_those_of_the_other_model() -> None:
    """Whatever pages the tokens lie in."""
    shape, inner = shape_named("tiny", 128)
    model = random_llama(shape, inner, "cpu", torch.float32)
    count = 80
    tokens, positions = torch.arange(3, 3 + count), torch.arange(count)
    slots = torch.zeros(count, dtype=torch.long)
    wanted = torch.tensor([0, count - 1])
    cache = KVCache(layers=2, slots=1, kv_heads=2, context=128, head_dim=16, dtype=torch.float32)
    step = Forward(tokens, slots, positions, (), (PromptPart(0, 0, 0, count),), wanted)
    expected = model.forward(step, cache)
    pages = torch.zeros(2, 4 * PAGE, 2 * shape.kv_heads, shape.head_dim)
    paged = PagedLlama(model, PlainOps(), pages)
    batch = Batch(
        tokens.int(), slots.int(), positions.int(), torch.tensor([[3, 1]], dtype=torch.int32), count
    )
    found = paged.logits(paged.hidden(batch)[wanted])
    assert torch.allclose(found, expected, atol=1e-4)
    assert float(pages[:, PAGE * 3].abs().sum()) > 0
    assert float(pages[:, :PAGE].abs().sum()) == 0
