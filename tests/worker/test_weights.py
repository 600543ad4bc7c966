"""Matrices: packed and plain agree."""

from dataclasses import replace

import pytest
import torch

from gateway.worker.gguf import GGUFFile, packaged_model
from gateway.worker.weights import (
    Matrix,
    agrees,
    bfloat16_is_fast,
    rows_for_packed,
    same_rows,
    stack,
)


@pytest.fixture(scope="module")
def packed() -> Matrix:
    """A packed matrix of the packaged model."""
    raw = GGUFFile(packaged_model()).tensors["blk.0.ffn_down.weight"]
    return stack([(raw, same_rows)], torch.bfloat16, pack=True)


def test_packed_and_plain_agree(packed: Matrix) -> None:
    """Up to rounding, with and without something to add; at many rows the plain form is used."""
    assert packed.packed is not None
    assert agrees(packed, packed.weight)
    assert agrees(replace(packed, packed_up_to=8), packed.weight)
    assert packed(torch.ones(60, 1536, dtype=torch.bfloat16)).shape == (60, 576)


def test_both_forms_hold_the_values_of_the_file(packed: Matrix) -> None:
    """As the library that belongs to the format reads them."""
    raw = GGUFFile(packaged_model()).tensors["blk.0.ffn_down.weight"]
    plain = stack([(raw, same_rows)], torch.bfloat16, pack=False)
    assert torch.equal(packed.weight, plain.weight)


@pytest.mark.skipif(not bfloat16_is_fast(), reason="no bfloat16 in hardware")
def test_reordered_and_plain_agree(packed: Matrix) -> None:
    """The order of oneDNN changes the time, not the result."""
    assert agrees(packed.without_packed().reordered(), packed.weight)


def test_a_wrong_packing_is_noticed(packed: Matrix) -> None:
    """The self-test fails when the scales are not those of the weights."""
    assert packed.scales is not None
    assert not agrees(replace(packed, scales=packed.scales * 1.5), packed.weight)
    assert not agrees(replace(packed, scales=packed.scales * float("nan")), packed.weight)


def test_the_cpu_says_what_it_can() -> None:
    """Plain values, the same each time."""
    assert bfloat16_is_fast() in {True, False}
    assert rows_for_packed() in {4, 16}
