"""The operations of the device's model as Triton kernels. See PlainOps for what each computes.

The attention is one kernel for prompts and for decoding: a program takes ``block`` tokens of one
slot with all query heads that share a key head, and walks over the slot's pages. Where programs are
few the pages are split among several, whose parts a second kernel adds up.
"""

import torch
import triton
import triton.language as tl

from gateway.worker.device.model import Batch
from gateway.worker.models.llama import LlamaShape
from gateway.worker.pages import PAGE

_LEAST_TILE = 16
_WIDE_TILE = 64
_SPLITS = ((128, 16), (1024, 4))  # programs up to which the pages are split, into so many
_COLUMNS = 1024


@triton.jit
def _norm_kernel(x, weight, out, epsilon, COLUMNS: tl.constexpr, WIDTH: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, WIDTH)
    used = at < COLUMNS
    values = tl.load(x + row * COLUMNS + at, used, 0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(values * values) / COLUMNS + epsilon)
    values = values * scale * tl.load(weight + at, used, 0.0).to(tl.float32)
    tl.store(out + row * COLUMNS + at, values.to(out.dtype.element_ty), used)


@triton.jit
def _gate_kernel(x, out, COLUMNS: tl.constexpr, WIDTH: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * WIDTH + tl.arange(0, WIDTH)
    used = at < COLUMNS
    gate = tl.load(x + row * 2 * COLUMNS + at, used, 0.0).to(tl.float32)
    up = tl.load(x + row * 2 * COLUMNS + COLUMNS + at, used, 0.0).to(tl.float32)
    tl.store(
        out + row * COLUMNS + at, (gate * tl.sigmoid(gate) * up).to(out.dtype.element_ty), used
    )


@triton.jit
def _place_kernel(
    qkv,
    cache,
    turns,
    table,
    slots,
    positions,
    table_width,
    HEADS: tl.constexpr,
    KV_HEADS: tl.constexpr,
    HALF: tl.constexpr,
    PAGE: tl.constexpr,
    ALL: tl.constexpr,
):
    token = tl.program_id(0).to(tl.int64)
    position = tl.load(positions + token)
    page = tl.load(table + tl.load(slots + token) * table_width + position // PAGE)
    place = page.to(tl.int64) * PAGE + position % PAGE
    heads = tl.arange(0, ALL)[:, None]
    at = tl.arange(0, HALF)[None]
    used = (heads < HEADS + 2 * KV_HEADS) & (at < HALF)
    start = token * (HEADS + 2 * KV_HEADS) * 2 * HALF
    first = tl.load(qkv + start + heads * 2 * HALF + at, used, 0.0).to(tl.float32)
    second = tl.load(qkv + start + heads * 2 * HALF + HALF + at, used, 0.0).to(tl.float32)
    cos = tl.load(turns + position * 2 * HALF + at)
    sin = tl.load(turns + position * 2 * HALF + HALF + at)
    turned = heads < HEADS + KV_HEADS
    one = tl.where(turned, first * cos - second * sin, first).to(qkv.dtype.element_ty)
    two = tl.where(turned, second * cos + first * sin, second).to(qkv.dtype.element_ty)
    query = used & (heads < HEADS)
    tl.store(qkv + start + heads * 2 * HALF + at, one, query)
    tl.store(qkv + start + heads * 2 * HALF + HALF + at, two, query)
    stored = used & (heads >= HEADS)
    there = cache + place * 2 * KV_HEADS * 2 * HALF + (heads - HEADS) * 2 * HALF + at
    tl.store(there, one, stored)
    tl.store(there + HALF, two, stored)


@triton.jit
def _with_page(scores, values, best, weight, mixed):
    highest = tl.maximum(best, tl.max(scores, 1))
    # A row may have seen nothing yet.
    base = tl.where(highest == float("-inf"), 0.0, highest)
    shares = tl.exp2(scores - base[:, None])
    shrunk = tl.exp2(best - base)
    mixed = tl.dot(shares.to(values.dtype), values, mixed * shrunk[:, None])
    return highest, weight * shrunk + tl.sum(shares, 1), mixed


@triton.jit
def _attend_kernel(
    qkv,
    cache,
    table,
    slots,
    positions,
    out,
    sums,
    scale,
    table_width,
    HEADS: tl.constexpr,
    KV_HEADS: tl.constexpr,
    DIM: tl.constexpr,
    PAGE: tl.constexpr,
    BLOCK: tl.constexpr,
    TILE: tl.constexpr,
    SPLITS: tl.constexpr,
):
    GROUP: tl.constexpr = HEADS // KV_HEADS
    first, kv_head, split = tl.program_id(0) * BLOCK, tl.program_id(1), tl.program_id(2)
    row = tl.arange(0, TILE)
    used = row < BLOCK * GROUP
    token = (first + row // GROUP).to(tl.int64)
    head = kv_head * GROUP + row % GROUP
    position = tl.load(positions + token, used, 0)
    at = tl.arange(0, DIM)
    query = (token * (HEADS + 2 * KV_HEADS) + head) * DIM
    q = tl.load(qkv + query[:, None] + at[None], used[:, None], 0.0)
    pages = tl.max(position) // PAGE + 1
    share = tl.cdiv(pages, SPLITS)
    page_row = table + tl.load(slots + first) * table_width
    inside = tl.arange(0, PAGE)
    key = inside[None] * 2 * KV_HEADS * DIM + kv_head * DIM + at[:, None]
    value = inside[:, None] * 2 * KV_HEADS * DIM + (KV_HEADS + kv_head) * DIM + at[None]
    best = tl.full([TILE], float("-inf"), tl.float32)
    weight = tl.zeros([TILE], tl.float32)
    mixed = tl.zeros([TILE, DIM], tl.float32)
    for number in range(split * share, tl.minimum((split + 1) * share, pages)):
        page = cache + tl.load(page_row + number).to(tl.int64) * PAGE * 2 * KV_HEADS * DIM
        seen = number * PAGE + inside[None] <= position[:, None]
        scores = tl.where(seen, tl.dot(q, tl.load(page + key)) * scale, float("-inf"))
        best, weight, mixed = _with_page(scores, tl.load(page + value), best, weight, mixed)
    part = (token * HEADS + head) * SPLITS + split
    if SPLITS == 1:
        mixed = mixed / weight[:, None]
    else:
        tl.store(sums + part * 2, best, used)
        tl.store(sums + part * 2 + 1, weight, used)
    there = out + part[:, None] * DIM + at[None]
    tl.store(there, mixed.to(out.dtype.element_ty), used[:, None])


@triton.jit
def _join_kernel(parts, sums, out, DIM: tl.constexpr, SPLITS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    split = tl.arange(0, SPLITS)
    at = tl.arange(0, DIM)
    best = tl.load(sums + (row * SPLITS + split) * 2)
    weight = tl.load(sums + (row * SPLITS + split) * 2 + 1)
    factor = tl.exp2(best - tl.max(best))
    mixed = tl.load(parts + (row * SPLITS + split[:, None]) * DIM + at[None])
    joined = tl.sum(mixed * factor[:, None], 0) / tl.sum(weight * factor)
    tl.store(out + row * DIM + at, joined.to(out.dtype.element_ty))


class KernelOps:
    """The kernels, launched."""

    def normed(self, x: torch.Tensor, weight: torch.Tensor, epsilon: float) -> torch.Tensor:
        """RMS norm of rows, times ``weight``."""
        out = torch.empty_like(x)
        rows, columns = x.shape
        if rows:
            _norm_kernel[(rows,)](x, weight, out, epsilon, columns, triton.next_power_of_2(columns))
        return out

    def gated(self, x: torch.Tensor) -> torch.Tensor:
        """``silu(gate) * up``."""
        rows, columns = x.shape[0], x.shape[1] // 2
        out = x.new_empty(rows, columns)
        _gate_kernel[(rows, triton.cdiv(columns, _COLUMNS))](x, out, columns, _COLUMNS)
        return out

    def place(
        self,
        qkv: torch.Tensor,
        cache: torch.Tensor,
        batch: Batch,
        turns: torch.Tensor,
        shape: LlamaShape,
    ) -> None:
        """Rotate queries and keys, store keys and values."""
        _place_kernel[(len(qkv),)](
            qkv,
            cache,
            turns,
            batch.table,
            batch.slots,
            batch.positions,
            batch.table.shape[1],
            shape.heads,
            shape.kv_heads,
            shape.head_dim // 2,
            PAGE,
            triton.next_power_of_2(shape.heads + 2 * shape.kv_heads),
        )

    def attend(
        self, qkv: torch.Tensor, cache: torch.Tensor, batch: Batch, shape: LlamaShape
    ) -> torch.Tensor:
        """Attention over pages."""
        tokens, heads, dim = len(qkv), shape.heads, shape.head_dim
        blocks = tokens // batch.block
        splits = _splits(blocks * shape.kv_heads) if batch.block == 1 else 1
        tile = triton.next_power_of_2(batch.block * heads // shape.kv_heads)
        tile = max(_LEAST_TILE, tile)
        out = qkv.new_empty(tokens, heads * dim)
        parts, sums = out, out
        if splits > 1:
            parts = qkv.new_empty(tokens * heads * splits, dim, dtype=torch.float32)
            sums = parts.new_empty(tokens * heads * splits, 2)
        _attend_kernel[(blocks, shape.kv_heads, splits)](
            qkv,
            cache,
            batch.table,
            batch.slots,
            batch.positions,
            parts,
            sums,
            dim**-0.5 * 1.4426950408889634,
            batch.table.shape[1],
            heads,
            shape.kv_heads,
            dim,
            PAGE,
            batch.block,
            tile,
            splits,
            num_warps=8 if tile > _WIDE_TILE else 4,
        )
        if splits > 1:
            _join_kernel[(tokens * heads,)](parts, sums, out, dim, splits)
        return out


def _splits(programs: int) -> int:
    return next((splits for most, splits in _SPLITS if programs <= most), 1)
