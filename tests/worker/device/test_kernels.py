"""The kernels against plain torch, on a GPU."""

import pytest
import torch

from gateway.worker.device.model import Batch
from gateway.worker.device.plain import PlainOps
from gateway.worker.models.llama import LlamaShape
from gateway.worker.pages import PAGE

if not torch.cuda.is_available():
    pytest.skip("torch sees no GPU here", allow_module_level=True)

from gateway.worker.device.kernels import KernelOps

DEVICE = "cuda"
CONTEXT = 640
SHAPES = [(4, 2, 16), (9, 3, 64), (32, 8, 128), (4, 4, 128)]


def _shape(heads: int, kv_heads: int, dim: int) -> LlamaShape:
    return LlamaShape(1, heads * dim, heads, kv_heads, dim, 260, CONTEXT, 10_000.0, 1e-5)


def _random(*size: int) -> torch.Tensor:
    return torch.randn(*size, device=DEVICE).to(torch.bfloat16)


def _batch(lengths: list[int], counts: list[int], block: int) -> Batch:
    """The last ``counts`` tokens of slots that are ``lengths`` long, and a block of padding."""
    width = CONTEXT // PAGE
    pages = torch.randperm(len(lengths) * width) + 1
    table = torch.zeros(len(lengths) + 1, width, dtype=torch.int32)
    table[:-1] = pages.view(len(lengths), width)
    slots: list[int] = []
    positions: list[int] = []
    for slot, (length, count) in enumerate(zip(lengths, counts, strict=True)):
        padding = -count % block
        slots += [slot] * count + [len(lengths)] * padding
        positions += [*range(length - count, length), *[0] * padding]
    slots += [len(lengths)] * block
    positions += [0] * block
    rows = (torch.zeros(len(slots)), torch.tensor(slots), torch.tensor(positions), table)
    there = [row.to(DEVICE, torch.int32) for row in rows]
    return Batch(there[0], there[1], there[2], there[3], block)


def _error(found: torch.Tensor, wanted: torch.Tensor) -> float:
    return float((found.float() - wanted.float()).norm() / wanted.float().norm())


@pytest.mark.parametrize("sizes", SHAPES)
@pytest.mark.parametrize(
    ("lengths", "counts", "block"),
    [
        ([1, 64, 65, 600], [1, 1, 1, 1], 1),
        ([40, 90, 500, 128] * 12, [1] * 48, 1),
        ([7, 33, 300, 640], [7, 33, 100, 200], 32),
    ],
)
def test_attention_reads_each_slot_up_to_the_token(
    sizes: tuple[int, int, int], lengths: list[int], counts: list[int], block: int
) -> None:
    """Over pages in any order, with and without splits, as float32 says within rounding."""
    shape, batch = _shape(*sizes), _batch(lengths, counts, block)
    cache = _random((len(lengths) * CONTEXT // PAGE + 1) * PAGE, 2 * shape.kv_heads, shape.head_dim)
    qkv = _random(len(batch.tokens), shape.heads + 2 * shape.kv_heads, shape.head_dim)
    found = KernelOps().attend(qkv, cache, batch, shape)
    wanted = PlainOps().attend(qkv.float(), cache.float(), batch, shape)
    real = batch.slots < len(lengths)
    assert _error(found[real], wanted[real]) < 0.01


@pytest.mark.parametrize("sizes", SHAPES)
def test_tokens_are_turned_and_stored(sizes: tuple[int, int, int]) -> None:
    """Queries stay, keys and values go to their page; nothing else of the cache changes."""
    shape, batch = _shape(*sizes), _batch([70, 300], [70, 40], 32)
    cache = _random((2 * CONTEXT // PAGE + 1) * PAGE, 2 * shape.kv_heads, shape.head_dim)
    qkv = _random(len(batch.tokens), shape.heads + 2 * shape.kv_heads, shape.head_dim)
    turns = torch.randn(CONTEXT, shape.head_dim, device=DEVICE)
    plain_cache, plain = cache.float(), qkv.float()
    KernelOps().place(qkv, cache, batch, turns, shape)
    PlainOps().place(plain, plain_cache, batch, turns, shape)
    assert _error(qkv[:, : shape.heads], plain[:, : shape.heads]) < 0.01
    assert _error(cache[PAGE:], plain_cache[PAGE:]) < 0.01


@pytest.mark.parametrize("columns", [64, 576, 4096, 14_336])
def test_norm_and_gate(columns: int) -> None:
    """Rows of any width."""
    x, weight = _random(5, columns), _random(columns)
    kernels, plain = KernelOps(), PlainOps()
    wanted = plain.normed(x.float(), weight.float(), 1e-5)
    assert _error(kernels.normed(x, weight, 1e-5), wanted) < 0.01
    both = _random(3, 2 * columns)
    assert _error(kernels.gated(both), plain.gated(both.float())) < 0.01
