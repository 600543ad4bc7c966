"""The reference operations against their definitions."""

import torch

from gateway.worker.device.model import Batch
from gateway.worker.device.plain import PlainOps
from gateway.worker.models.llama import LlamaShape
from gateway.worker.pages import PAGE

SHAPE = LlamaShape(1, 32, 2, 1, 16, 260, 256, 10_000.0, 1e-5)


def _batch(slots: list[int], positions: list[int]) -> Batch:
    table = torch.tensor([[2, 1], [3, 4], [0, 0]], dtype=torch.int32)
    rows = [torch.tensor(values, dtype=torch.int32) for values in ([0], slots, positions)]
    return Batch(rows[0], rows[1], rows[2], table, 1)


def test_a_token_at_position_zero_is_not_turned_and_lies_in_its_page() -> None:
    """Its key and value are where the table says."""
    cache, qkv = torch.zeros(5 * PAGE, 2, 16), torch.randn(2, 4, 16)
    before = qkv.clone()
    turns = torch.cat([torch.ones(256, 8), torch.zeros(256, 8)], 1)
    PlainOps().place(qkv, cache, _batch([0, 1], [0, PAGE + 5]), turns, SHAPE)
    assert torch.equal(qkv, before)
    assert torch.equal(cache[2 * PAGE], before[0, 2:])
    assert torch.equal(cache[4 * PAGE + 5], before[1, 2:])


def test_a_quarter_turn_swaps_the_halves() -> None:
    """Cosine 0 and sine 1."""
    cache, qkv = torch.zeros(5 * PAGE, 2, 16), torch.randn(1, 4, 16)
    before = qkv.clone()
    turns = torch.cat([torch.zeros(256, 8), torch.ones(256, 8)], 1)
    PlainOps().place(qkv, cache, _batch([0], [3]), turns, SHAPE)
    assert torch.equal(qkv[:, :3, :8], -before[:, :3, 8:])
    assert torch.equal(qkv[:, :3, 8:], before[:, :3, :8])
    assert torch.equal(qkv[:, 3], before[:, 3])


def test_a_query_sees_its_slot_up_to_itself() -> None:
    """The mean of the values there when all keys are equal."""
    cache = torch.zeros(5 * PAGE, 2, 16)
    cache[:, 1] = torch.arange(5 * PAGE)[:, None].float()
    qkv = torch.randn(2, 4, 16)
    mixed = PlainOps().attend(qkv, cache, _batch([0, 1], [2, PAGE]), SHAPE)
    assert torch.allclose(mixed[0], torch.tensor(2 * PAGE + 1.0), atol=1e-3)
    expected = (sum(range(3 * PAGE, 4 * PAGE)) + 4 * PAGE) / (PAGE + 1)
    assert torch.allclose(mixed[1], torch.tensor(expected), atol=1e-2)


def test_norm_and_gate() -> None:
    """By hand."""
    x = torch.tensor([[3.0, 4.0]])
    found = PlainOps().normed(x, torch.tensor([1.0, 2.0]), 0.0)
    assert torch.allclose(found, torch.tensor([[3.0, 8.0]]) / 12.5**0.5)
    both = torch.tensor([[0.0, 1.0, 5.0, 2.0]])
    assert torch.allclose(PlainOps().gated(both), torch.tensor([[0.0, 1.4621]]), atol=1e-3)
