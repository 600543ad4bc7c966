"""The cache of keys and values."""

import psutil
import torch

from gateway.worker.kv_cache import KVCache


def test_a_write_lands_in_its_slot_and_position() -> None:
    """And nowhere else."""
    cache = KVCache(layers=2, slots=3, kv_heads=2, context=4, head_dim=5, dtype=torch.float32)
    key = torch.ones(2, 2, 5)
    places = cache.places(torch.tensor([0, 2]), torch.tensor([3, 1]))
    cache.write(1, places, torch.cat([key, 2 * key], 1))
    keys, values = cache.window(1, 0, 3, 4)
    assert keys[0, :, 3].eq(1).all()
    assert values[2, :, 1].eq(2).all()
    assert (float(keys.sum()), float(values.sum())) == (20, 40)
    assert cache.window(1, 2, 1, 2)[1][0, :, 1].eq(2).all()
    assert not cache.window(0, 0, 3, 4)[0].any()


def test_a_slot_takes_memory_as_it_fills() -> None:
    """A short sequence in each slot costs what it holds, not the whole context."""
    process = psutil.Process()
    before = process.memory_info().rss
    cache = KVCache(layers=4, slots=32, kv_heads=4, context=2048, head_dim=64, dtype=torch.bfloat16)
    slots, positions = torch.arange(32).repeat(8), torch.arange(8).repeat_interleave(32)
    both = torch.ones(256, 8, 64, dtype=torch.bfloat16)
    for layer in range(4):
        cache.write(layer, cache.places(slots, positions), both)
    assert process.memory_info().rss - before < 30 * 2**20
