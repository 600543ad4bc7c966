"""Where the line of each row of a closed segment lies: in its output or in its error file.

The table is a blob: the lengths of both files, then 16 bytes per row in dispatch order, as the
queue has them while the segment runs. There "part" 0 is the output file and 1 the error file.
"""

import struct
from collections.abc import Sequence

from gateway.core.work import PartRef

KINDS = ("output", "error")
REF = struct.Struct("<IQI")
_LENGTHS = struct.Struct("<QQ")


class LineTable:
    """The table while the two files are written."""

    def __init__(self, rows: int) -> None:
        self._refs = bytearray(REF.size * rows)
        self._lengths = [0, 0]

    def add(self, row: int, line: bytes, *, good: bool) -> None:
        """The line of ``row`` is the next one of its file."""
        kind = 0 if good else 1
        REF.pack_into(self._refs, row * REF.size, kind, self._lengths[kind], len(line))
        self._lengths[kind] += len(line)

    def packed(self) -> bytes:
        """The blob."""
        return _LENGTHS.pack(*self._lengths) + bytes(self._refs)


def lengths_range() -> tuple[int, int]:
    """(offset, length) of the lengths in the blob."""
    return 0, _LENGTHS.size


def lengths(packed: bytes) -> tuple[int, int]:
    """Bytes of the output and of the error file."""
    output, error = _LENGTHS.unpack(packed)
    return output, error


def refs_range(start: int, end: int) -> tuple[int, int]:
    """(offset, length) of rows ``start`` to ``end`` in the blob."""
    return _LENGTHS.size + start * REF.size, (end - start) * REF.size


def refs(packed: bytes) -> Sequence[PartRef]:
    """The references in a piece of a table, or in a reply of the queue."""
    return [PartRef(*ref) for ref in REF.iter_unpack(packed)]
