"""Matrices on the CPU: packed 4-bit for a few rows, bfloat16 for many.

At a few rows a step is bound by reading weights, so 4 bits win; at many rows it is bound by
arithmetic, where bfloat16 with hardware support wins. Both hold the same values up to bfloat16
rounding.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F  # noqa: N812 - the name everybody knows
from gguf.constants import GGMLQuantizationType

from gateway.worker.gguf import RawTensor

_GROUP = 32
_Q4_1_BYTES = 20
PACKED_UP_TO = 16
Rows = Callable[[npt.NDArray[np.generic]], npt.NDArray[np.generic]]


def same_rows(values: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    """Rows as they are in the file."""
    return values


@dataclass(frozen=True, slots=True)
class Matrix:
    """One linear map ``x @ w.T``; ``packed`` and ``scales`` are None where it has no 4-bit form."""

    weight: torch.Tensor
    packed: torch.Tensor | None = None
    scales: torch.Tensor | None = None

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """(rows, columns) → (rows, outputs), in the type of ``x``."""
        if self.packed is not None and x.shape[0] <= PACKED_UP_TO:
            product: torch.Tensor = torch.ops.aten._weight_int4pack_mm_for_cpu(  # noqa: SLF001
                x, self.packed, _GROUP, self.scales
            )
            return product
        return F.linear(x, self.weight)

    def without_packed(self) -> "Matrix":
        """The same map by its plain form alone."""
        return Matrix(self.weight)


def bfloat16_is_fast() -> bool:
    """Whether this CPU multiplies bfloat16 in hardware."""
    capability = torch.backends.cpu.get_cpu_capability()
    supported = bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())  # noqa: SLF001 - no public name
    return supported and "AVX512" in capability


def stack(parts: Sequence[tuple[RawTensor, Rows]], dtype: torch.dtype, *, pack: bool) -> Matrix:
    """Several tensors as the one matrix whose outputs are theirs, one after the other.

    Each part comes with a reordering of its rows. Packs when all parts are Q4_1 and ``pack``.
    """
    floats = np.concatenate([order(raw.floats()) for raw, order in parts])
    weight = torch.from_numpy(np.ascontiguousarray(floats)).to(dtype)
    if not pack or any(raw.kind is not GGMLQuantizationType.Q4_1 for raw, _ in parts):
        return Matrix(weight)
    pieces = [_unpack_q4_1(raw, order) for raw, order in parts]
    codes, scale, low = (np.concatenate(part) for part in zip(*pieces, strict=True))
    packed = torch.ops.aten._convert_weight_to_int4pack_for_cpu(  # noqa: SLF001 - no public name
        torch.from_numpy(codes.astype(np.int32)), 2
    )
    both = np.stack([scale, low + 8 * scale], axis=-1).transpose(1, 0, 2)
    return Matrix(weight, packed, torch.from_numpy(np.ascontiguousarray(both)).to(torch.bfloat16))


def agrees(matrix: Matrix, columns: int) -> bool:
    """Self-test: the packed form gives what the plain one gives, up to rounding."""
    generator = torch.Generator().manual_seed(7)
    x = torch.randn((4, columns), generator=generator).to(torch.bfloat16)
    try:
        got = matrix(x).float()
    except (RuntimeError, NotImplementedError):
        return False
    wanted = F.linear(x.float(), matrix.weight.float())
    return bool((got - wanted).norm() <= 0.02 * wanted.norm())


def _unpack_q4_1(
    raw: RawTensor, order: Rows
) -> tuple[npt.NDArray[np.generic], npt.NDArray[np.generic], npt.NDArray[np.generic]]:
    """Codes (rows, columns) 0..15, scale and minimum (rows, groups) of a Q4_1 tensor."""
    rows, columns = raw.shape
    blocks = raw.data.reshape(rows, columns // _GROUP, _Q4_1_BYTES)
    halves = np.ascontiguousarray(blocks[..., :4]).view(np.float16).astype(np.float32)
    low, high = blocks[..., 4:] & 15, blocks[..., 4:] >> 4
    codes = np.concatenate([low, high], axis=-1).reshape(rows, columns)
    return order(codes), order(halves[..., 0]), order(halves[..., 1])
