"""Matrices: packed and plain agree."""

import pytest
import torch

from gateway.worker.gguf import GGUFFile, packaged_model
from gateway.worker.weights import Matrix, agrees, bfloat16_is_fast, same_rows, stack


@pytest.fixture(scope="module")
def packed() -> Matrix:
    """A packed matrix of the packaged model."""
    raw = GGUFFile(packaged_model()).tensors["blk.0.ffn_down.weight"]
    return stack([(raw, same_rows)], torch.bfloat16, pack=True)


def test_packed_and_plain_agree(packed: Matrix) -> None:
    """Up to rounding; at many rows the plain form is used."""
    assert packed.packed is not None
    assert agrees(packed, 1536)
    x = torch.randn(3, 1536, generator=torch.Generator().manual_seed(1)).to(torch.bfloat16)
    few, plain = packed(x).float(), packed.without_packed()(x).float()
    assert (few - plain).norm() <= 0.02 * plain.norm()
    assert packed(x.repeat(20, 1)).shape == (60, 576)


def test_a_wrong_packing_is_noticed(packed: Matrix) -> None:
    """The self-test fails when the scales are not those of the weights."""
    assert packed.scales is not None
    assert not agrees(Matrix(packed.weight, packed.packed, packed.scales * 1.5), 1536)


def test_the_cpu_says_what_it_can() -> None:
    """A plain truth value."""
    assert bfloat16_is_fast() in {True, False}
