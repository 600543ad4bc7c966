"""Keys and values of all sequences: one slot per sequence, made once."""

import numpy as np
import torch


class KVCache:
    """``slots`` places of ``context`` tokens each; memory is taken as it is used."""

    def __init__(
        self,
        *,
        layers: int,
        slots: int,
        kv_heads: int,
        context: int,
        head_dim: int,
        dtype: torch.dtype,
    ) -> None:
        size = (layers, slots, kv_heads, context, head_dim)
        self.context = context
        self._keys = _untouched(size, dtype)
        self._values = _untouched(size, dtype)

    def write(
        self,
        layer: int,
        slots: torch.Tensor,
        positions: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Store (tokens, kv_heads, head_dim); gives the layer's (slots, kv_heads, context, dim)."""
        keys, values = self._keys[layer], self._values[layer]
        keys[slots, :, positions] = key
        values[slots, :, positions] = value
        return keys, values


def _untouched(size: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """Zeros that take no memory until they are written; ``torch.zeros`` writes all of them."""
    plain = np.zeros(size, dtype=f"V{dtype.itemsize}").view(f"i{dtype.itemsize}")
    return torch.from_numpy(plain).view(dtype)
