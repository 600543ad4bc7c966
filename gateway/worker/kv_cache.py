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
        self._head_dim = head_dim
        size = (layers, slots * context, 2 * kv_heads, head_dim)
        self._layers = _untouched(size, dtype).unbind(0)

    def places(self, slots: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """Where tokens of these slots and positions are stored, in every layer."""
        return slots * self.context + positions

    def write(self, layer: int, places: torch.Tensor, both: torch.Tensor) -> None:
        """Store (tokens, 2 * kv_heads, head_dim), keys before values."""
        self._layers[layer].index_copy_(0, places, both)

    def window(
        self, layer: int, first: int, count: int, width: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values of ``count`` slots from ``first`` on, their first ``width`` tokens.

        Each is (count, kv_heads, width, head_dim), without a copy.
        """
        per_head = self._head_dim
        per_token = 2 * self._kv_heads * per_head
        size = (count, self._kv_heads, width, per_head)
        stride = (self.context * per_token, per_head, per_token, 1)
        whole = self._layers[layer]
        start = whole.storage_offset() + first * self.context * per_token
        keys = whole.as_strided(size, stride, start)
        return keys, whole.as_strided(size, stride, start + self._kv_heads * per_head)


def _untouched(size: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """Zeros that take no memory until they are written.

    Small pages: a slot is rarely filled, and a large page would fill it.
    """
    length = math.prod(size) * dtype.itemsize
    memory = mmap.mmap(-1, max(length, 1))
    with contextlib.suppress(AttributeError, OSError):  # where the system has no such advice
        memory.madvise(mmap.MADV_NOHUGEPAGE)
    return torch.frombuffer(memory, dtype=dtype, count=math.prod(size)).view(size)
