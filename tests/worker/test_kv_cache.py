"""The cache of keys and values."""

import torch

from gateway.worker.kv_cache import KVCache


def test_a_write_lands_in_its_slot_and_position() -> None:
    """And nowhere else."""
    cache = KVCache(layers=2, slots=3, kv_heads=2, context=4, head_dim=5, dtype=torch.float32)
    key = torch.ones(2, 2, 5)
    slots, positions = torch.tensor([0, 2]), torch.tensor([3, 1])
    keys, values = cache.write(1, slots, positions, key, 2 * key)
    assert keys[0, :, 3].eq(1).all()
    assert values[2, :, 1].eq(2).all()
    assert (float(keys.sum()), float(values.sum())) == (20, 40)
