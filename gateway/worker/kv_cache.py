"""Keys and values of all sequences: one slot per sequence, made once."""

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
        self._keys = torch.zeros(size, dtype=dtype)
        self._values = torch.zeros(size, dtype=dtype)

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
