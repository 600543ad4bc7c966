"""Keys and values of all sequences: one slot per sequence, made once."""

import contextlib
import math
import mmap

import torch


class KVCache:
    """``slots`` places of ``context`` tokens each; memory is taken as it is used.

    One layer is (slots * context, 2 * kv_heads, head_dim): a token's keys, then its values, so that
    one copy stores both.
    """

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
        self.context = context
        self._kv_heads = kv_heads
        size = (layers, slots * context, 2 * kv_heads, head_dim)
        self._layers = _untouched(size, dtype).unbind(0)
        apart = [layer.view(slots, context, 2, kv_heads, head_dim) for layer in self._layers]
        self._keys = [both[:, :, 0].transpose(1, 2) for both in apart]
        self._values = [both[:, :, 1].transpose(1, 2) for both in apart]

    def places(self, slots: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """Where tokens of these slots and positions are stored, in every layer."""
        return slots * self.context + positions

    def write(
        self, layer: int, places: torch.Tensor, both: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Store (tokens, 2 * kv_heads, head_dim), keys before values.

        Gives the keys and the values of the layer, each (slots, kv_heads, context, head_dim).
        """
        self._layers[layer].index_copy_(0, places, both)
        return self._keys[layer], self._values[layer]


def _untouched(size: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """Zeros that take no memory until they are written.

    Small pages: a slot is rarely filled, and a large page would fill it.
    """
    length = math.prod(size) * dtype.itemsize
    memory = mmap.mmap(-1, max(length, 1))
    with contextlib.suppress(AttributeError, OSError):  # where the system has no such advice
        memory.madvise(mmap.MADV_NOHUGEPAGE)
    return torch.frombuffer(memory, dtype=dtype, count=math.prod(size)).view(size)
