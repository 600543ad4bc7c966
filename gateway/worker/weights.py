"""Matrices on the CPU: packed 4-bit for a row or two, bfloat16 for more.

At one row a step is bound by reading weights, so 4 bits win; at many rows it is bound by
arithmetic, where bfloat16 with hardware support wins. Both hold the same values up to bfloat16
rounding.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F  # noqa: N812 - the name everybody knows
from gguf.constants import GGMLQuantizationType

from gateway.worker.gguf import RawTensor

_GROUP = 32
_Q4_1_BYTES = 20
_USUAL_ROWS = 64
_PACKED_ROWS = 16
_PACKED_ROWS_AMX = 4
Rows = Callable[[npt.NDArray[np.generic]], npt.NDArray[np.generic]]


def same_rows(values: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    """Rows as they are in the file."""
    return values


@dataclass(frozen=True, slots=True)
class Matrix:
    """One linear map ``x @ w.T``.

    ``weight`` may lie in oneDNN's own order (see ``reordered``). ``packed`` and ``scales`` are None
    where there is no 4-bit form; it is used for at most ``packed_up_to`` rows.
    """

    weight: torch.Tensor
    packed: torch.Tensor | None = None
    scales: torch.Tensor | None = None
    packed_up_to: int = 1

    def __call__(self, x: torch.Tensor, add: torch.Tensor | None = None) -> torch.Tensor:
        """(rows, columns) → (rows, outputs), in the type of ``x``; plus ``add`` where given."""
        if self.packed is not None and x.shape[0] <= self.packed_up_to:
            product: torch.Tensor = torch.ops.aten._weight_int4pack_mm_for_cpu(  # noqa: SLF001
                x, self.packed, _GROUP, self.scales
            )
            return product if add is None else product.add_(add)
        if self.weight.is_mkldnn:
            return _reordered_product(x, self.weight, add)
        return F.linear(x, self.weight) if add is None else F.linear(x, self.weight).add_(add)

    def without_packed(self) -> "Matrix":
        """The same map by its bfloat16 or float32 form alone."""
        return Matrix(self.weight)

    def reordered(self) -> "Matrix":
        """The same map with its bfloat16 weight in the order that oneDNN multiplies fastest."""
        ordered = torch.ops.mkldnn._reorder_linear_weight(self.weight, _USUAL_ROWS)  # noqa: SLF001
        return replace(self, weight=ordered)


def bfloat16_is_fast() -> bool:
    """Whether this CPU multiplies bfloat16 in hardware."""
    capability = torch.backends.cpu.get_cpu_capability()
    supported = bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())  # noqa: SLF001 - no public name
    return supported and "AVX512" in capability


def stack(parts: Sequence[tuple[RawTensor, Rows]], dtype: torch.dtype, *, pack: bool) -> Matrix:
    """Several tensors as the one matrix whose outputs are theirs, one after the other.

    Each part comes with a reordering of its rows. Packs when all parts are Q4_1 and ``pack``.
    """
    if pack and all(raw.kind is GGMLQuantizationType.Q4_1 for raw, _ in parts):
        return _packed(parts, dtype)
    floats = np.concatenate([order(raw.floats()) for raw, order in parts])
    return Matrix(torch.from_numpy(np.ascontiguousarray(floats)).to(dtype))


def agrees(matrix: Matrix, plain: torch.Tensor) -> bool:
    """Self-test: at few rows and at many the matrix gives what ``plain`` gives, up to rounding."""
    generator = torch.Generator().manual_seed(7)
    for rows in (1, matrix.packed_up_to, matrix.packed_up_to + 1, _USUAL_ROWS):
        x = torch.randn((rows, plain.shape[1]), generator=generator).to(matrix.weight.dtype)
        try:
            got = matrix(x, matrix(x).mul_(0)).float()
        except (RuntimeError, NotImplementedError, AttributeError):
            return False
        wanted = F.linear(x.float(), plain.float())
        if not bool((got - wanted).norm() <= 0.02 * wanted.norm()):  # also when it is no number
            return False
    return True


def rows_for_packed() -> int:
    """The most rows at which the packed form is the faster one.

    Measured on two cores with AMX: all matrices of a 135M model take 5.2 ms packed and 7.5 ms
    reordered at 1 and 2 rows, 9 and 7.5 ms at 4; on a host with busy neighbours, whose memory is
    slower, 10 and 23 ms at 4. Without AMX the two meet at 16 rows. Not measured at start, so that
    the same machine always computes the same.
    """
    return _PACKED_ROWS_AMX if torch.cpu._is_amx_tile_supported() else _PACKED_ROWS  # noqa: SLF001


def _reordered_product(
    x: torch.Tensor, weight: torch.Tensor, add: torch.Tensor | None
) -> torch.Tensor:
    product: torch.Tensor
    if add is None:
        product = torch.ops.mkldnn._linear_pointwise(x, weight, None, "none", [], "")  # noqa: SLF001
    else:
        product = torch.ops.mkldnn._linear_pointwise.binary(x, add, weight, None, "add")  # noqa: SLF001
    return product


def _packed(parts: Sequence[tuple[RawTensor, Rows]], dtype: torch.dtype) -> Matrix:
    """Both forms of Q4_1 tensors, which hold codes 0..15, and a scale and minimum per group."""
    pieces = [_unpack_q4_1(raw, order) for raw, order in parts]
    codes, scale, low = (
        torch.from_numpy(np.concatenate(part)) for part in zip(*pieces, strict=True)
    )
    groups = codes.view(*scale.shape, _GROUP).float()
    weight = torch.addcmul(low[..., None], groups, scale[..., None]).view(codes.shape).to(dtype)
    packed = torch.ops.aten._convert_weight_to_int4pack_for_cpu(codes.int(), 2)  # noqa: SLF001
    both = torch.stack([scale, low + 8 * scale], -1).transpose(0, 1).contiguous()
    return Matrix(weight, packed, both.to(torch.bfloat16), rows_for_packed())


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
