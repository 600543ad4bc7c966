"""The operations of the device's model in plain torch: what the kernels must compute.

They run anywhere and are slow.
"""

import torch
import torch.nn.functional as F  # noqa: N812 - the name everybody knows

from gateway.worker.device.model import Batch
from gateway.worker.models.llama import LlamaShape
from gateway.worker.pages import PAGE


class PlainOps:
    """Reference operations."""

    def normed(self, x: torch.Tensor, weight: torch.Tensor, epsilon: float) -> torch.Tensor:
        """RMS norm of rows, times ``weight``."""
        return F.rms_norm(x, x.shape[1:], weight, epsilon)

    def gated(self, x: torch.Tensor) -> torch.Tensor:
        """``silu(gate) * up`` of (rows, gate and up)."""
        gate, up = x.chunk(2, -1)
        return F.silu(gate) * up

    def place(
        self,
        qkv: torch.Tensor,
        cache: torch.Tensor,
        batch: Batch,
        turns: torch.Tensor,
        shape: LlamaShape,
    ) -> None:
        """Turn queries and keys by their position, in place; store keys and values.

        ``qkv`` is (tokens, heads + 2 * kv_heads, head_dim), ``turns`` (context, head_dim) holds
        cosines, then sines.
        """
        cos, sin = turns[batch.positions.long()][:, None].to(qkv.dtype).chunk(2, -1)
        first, second = qkv[:, : shape.heads + shape.kv_heads].chunk(2, -1)
        turned = first * cos - second * sin, second * cos + first * sin
        first.copy_(turned[0])
        second.copy_(turned[1])
        slots, positions = batch.slots.long(), batch.positions.long()
        places = batch.table[slots, positions // PAGE].long() * PAGE + positions % PAGE
        cache.index_copy_(0, places, qkv[:, shape.heads :])

    def attend(
        self, qkv: torch.Tensor, cache: torch.Tensor, batch: Batch, shape: LlamaShape
    ) -> torch.Tensor:
        """Each token's query against its slot's cache up to its position: (tokens, hidden)."""
        width = int(batch.positions.max()) + 1
        keys = torch.arange(width, device=qkv.device)
        places = batch.table[batch.slots.long()][:, keys // PAGE].long() * PAGE + keys % PAGE
        k, v = cache[places].chunk(2, 2)
        q = qkv[:, : shape.heads].reshape(len(qkv), shape.kv_heads, -1, shape.head_dim)
        mask = keys[None] <= batch.positions[:, None]
        mixed = F.scaled_dot_product_attention(
            q, k.transpose(1, 2), v.transpose(1, 2), attn_mask=mask[:, None, None]
        )
        return mixed.reshape(len(qkv), -1)
