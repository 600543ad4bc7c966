"""The Llama architecture over a paged cache: one pass over tokens that know slot and position."""

from dataclasses import dataclass
from typing import Protocol

import torch
import torch.nn.functional as F  # noqa: N812 - the name everybody knows

from gateway.worker.models.llama import Llama, LlamaShape
from gateway.worker.weights import Matrix


@dataclass(frozen=True, slots=True)
class Batch:
    """What one pass reads: tokens with slot and position, and where their slots' pages are.

    ``block`` tokens in a row are of one slot; 1 when each is of its own.

    ``table`` (slots + 1, pages) is that of a PageTable; all tensors are int32.
    """

    tokens: torch.Tensor
    slots: torch.Tensor
    positions: torch.Tensor
    table: torch.Tensor
    block: int


class Ops(Protocol):
    """What is not a matrix product; see PlainOps for what each computes."""

    def normed(self, x: torch.Tensor, weight: torch.Tensor, epsilon: float) -> torch.Tensor:
        """RMS norm."""

    def gated(self, x: torch.Tensor) -> torch.Tensor:
        """SiLU of one half times the other."""

    def place(
        self,
        qkv: torch.Tensor,
        cache: torch.Tensor,
        batch: Batch,
        turns: torch.Tensor,
        shape: LlamaShape,
    ) -> None:
        """Rotate and store."""

    def attend(
        self, qkv: torch.Tensor, cache: torch.Tensor, batch: Batch, shape: LlamaShape
    ) -> torch.Tensor:
        """Attention."""


class PagedLlama:
    """The weights of ``model``, which lie on the device, and a cache of ``pages`` there."""

    def __init__(self, model: Llama, ops: Ops, cache: torch.Tensor) -> None:
        shape = self.shape = model.shape
        self._model = model
        self._ops = ops
        self._caches = cache.unbind(0)
        device = model.embedding.device
        half = torch.arange(0, shape.head_dim, 2, dtype=torch.float32) / shape.head_dim
        angles = torch.arange(shape.context).float()[:, None] * (1 / shape.rope_base**half)
        self._turns = torch.cat([angles.cos(), angles.sin()], 1).to(device)

    def hidden(self, batch: Batch) -> torch.Tensor:
        """(tokens, hidden); keys and values of all tokens go to the cache."""
        shape, ops = self.shape, self._ops
        x = F.embedding(batch.tokens, self._model.embedding)
        for layer, cache in zip(self._model.layers, self._caches, strict=True):
            h = ops.normed(x, layer.attention_norm, shape.epsilon)
            qkv = layer.qkv(h).view(-1, shape.heads + 2 * shape.kv_heads, shape.head_dim)
            ops.place(qkv, cache, batch, self._turns, shape)
            x = _added(layer.out, ops.attend(qkv, cache, batch, shape), x)
            h = ops.normed(x, layer.mlp_norm, shape.epsilon)
            x = _added(layer.down, ops.gated(layer.gate_up(h)), x)
        return x

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """(rows, hidden) → (rows, vocab)."""
        return self._model.head(self._ops.normed(hidden, self._model.norm, self.shape.epsilon))


def _added(matrix: Matrix, x: torch.Tensor, to: torch.Tensor) -> torch.Tensor:
    """Product and sum as one operation."""
    return torch.addmm(to, x, matrix.weight.t())
