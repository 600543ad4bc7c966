"""The Llama architecture on CPU slots: one forward pass over any mix of prompts and decodes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812 - the name everybody knows

from gateway.worker.kv_cache import KVCache
from gateway.worker.weights import Matrix


@dataclass(frozen=True, slots=True)
class LlamaShape:
    """Sizes of a model. ``heads`` is a multiple of ``kv_heads``."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    context: int
    rope_base: float
    epsilon: float


@dataclass(frozen=True, slots=True)
class Layer:
    """Weights of one layer; ``qkv`` and ``gate_up`` are fused."""

    qkv: Matrix
    out: Matrix
    gate_up: Matrix
    down: Matrix
    attention_norm: torch.Tensor
    mlp_norm: torch.Tensor


@dataclass(frozen=True, slots=True)
class SlotRange:
    """Decoding slots ``first`` to ``first + count``, whose tokens stand at ``at`` in the batch.

    ``mask`` (count, 1, 1, width) is 0 where a key exists and -inf where not.
    """

    at: int
    first: int
    count: int
    width: int
    mask: torch.Tensor


@dataclass(frozen=True, slots=True)
class PromptPart:
    """``count`` prompt tokens of ``slot`` from position ``start``, standing at ``at``."""

    at: int
    slot: int
    start: int
    count: int


@dataclass(frozen=True, slots=True)
class Forward:
    """One pass: all tokens with slot and position, how to attend, which rows need logits.

    Decoding tokens stand before those of prompts, and both in the order of their parts.
    """

    tokens: torch.Tensor
    slots: torch.Tensor
    positions: torch.Tensor
    decodes: Sequence[SlotRange]
    prompts: Sequence[PromptPart]
    wanted: torch.Tensor


class Llama:
    """Weights and the pass over them."""

    def __init__(
        self,
        shape: LlamaShape,
        embedding: torch.Tensor,
        layers: Sequence[Layer],
        norm: torch.Tensor,
        head: Matrix,
    ) -> None:
        self.shape = shape
        self.dtype = embedding.dtype
        self.embedding = embedding
        self.layers = layers
        self.norm = norm
        self.head = head
        half = torch.arange(0, shape.head_dim, 2, dtype=torch.float32) / shape.head_dim
        angles = torch.arange(shape.context).float()[:, None] * (1 / shape.rope_base**half)
        self._cos = angles.cos().repeat(1, 2).to(self.dtype)[:, None]
        self._sin = torch.cat([-angles.sin(), angles.sin()], 1).to(self.dtype)[:, None]

    def forward(
        self, step: Forward, cache: KVCache, between: Callable[[], None] | None = None
    ) -> torch.Tensor:
        """Logits (wanted, vocab); keys and values of all tokens go to the cache.

        ``between`` is called after each layer: other slots may be worked on there.
        """
        shape = self.shape
        x = F.embedding(step.tokens, self.embedding)
        cos, sin = self._cos[step.positions], self._sin[step.positions]
        places = cache.places(step.slots, step.positions)
        for number, layer in enumerate(self.layers):
            h = _normed(x, layer.attention_norm, shape.epsilon)
            qkv = layer.qkv(h).view(-1, shape.heads + 2 * shape.kv_heads, shape.head_dim)
            _rotate(qkv[:, : shape.heads + shape.kv_heads], cos, sin)
            cache.write(number, places, qkv[:, shape.heads :])
            x = layer.out(self._attend(step, qkv[:, : shape.heads], cache, number), x)
            gate, up = layer.gate_up(_normed(x, layer.mlp_norm, shape.epsilon)).chunk(2, -1)
            x = layer.down(F.silu(gate).mul_(up), x)
            if between is not None:
                between()
        return self.head(_normed(x[step.wanted], self.norm, shape.epsilon))

    def _attend(
        self, step: Forward, query: torch.Tensor, cache: KVCache, layer: int
    ) -> torch.Tensor:
        """(tokens, heads, head_dim) → (tokens, hidden)."""
        parts = [self._decode(part, query, cache, layer) for part in step.decodes]
        parts += [self._prefill(part, query, cache, layer) for part in step.prompts]
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def _decode(
        self, part: SlotRange, query: torch.Tensor, cache: KVCache, layer: int
    ) -> torch.Tensor:
        """One token per slot. Heads that share keys are folded into the query's length."""
        shape = self.shape
        q = query[part.at : part.at + part.count]
        q = q.view(part.count, shape.kv_heads, -1, shape.head_dim)
        k, v = cache.window(layer, part.first, part.count, part.width)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=part.mask)
        return mixed.reshape(part.count, -1)

    def _prefill(
        self, part: PromptPart, query: torch.Tensor, cache: KVCache, layer: int
    ) -> torch.Tensor:
        """A piece of one prompt against all of it so far. Shared keys are not copied."""
        shape = self.shape
        end = part.start + part.count
        share = shape.heads // shape.kv_heads
        q = query[part.at : part.at + part.count].transpose(0, 1)
        q = q.view(shape.kv_heads, share, part.count, shape.head_dim)
        k, v = cache.window(layer, part.slot, 1, end)
        k, v = (both[0, :, None].expand(-1, share, -1, -1) for both in (k, v))
        if part.start == 0:
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            mask = torch.ones(part.count, end, dtype=torch.bool).tril(part.start)
            mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return mixed.permute(2, 0, 1, 3).reshape(part.count, -1)


def _normed(x: torch.Tensor, weight: torch.Tensor, epsilon: float) -> torch.Tensor:
    """RMS norm. The weight apart: together they are not one operation on the CPU, but seven."""
    return F.rms_norm(x, x.shape[1:], None, epsilon).mul_(weight)


def _rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> None:
    """Rotary embedding in place: halves of a head are the two coordinates."""
    swapped = x.roll(x.shape[-1] // 2, -1)
    x.mul_(cos).addcmul_(swapped, sin)
