"""How far a reader of results has come: the rows it has, written small enough to go with each line.

A cursor names rows, not places in files or in the queue. So it stays true whatever becomes of
those: after a restart, after a rebuild of a lost queue, after the end of the batch.
"""

import base64
import binascii
import zlib
from bisect import bisect_right
from collections.abc import Iterator

from gateway.core.errors import InvalidRequest

MOST_RANGES = 256
_VERSION = 1
_HEAD = 5
_LONGEST = 64 * 1024
_MORE = 0x80
_MOST_BITS = 32


class RowSet:
    """A set of row numbers, kept as ranges of neighbours."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __contains__(self, row: int) -> bool:
        at = bisect_right(self._starts, row)
        return at > 0 and row < self._ends[at - 1]

    def ranges(self) -> list[tuple[int, int]]:
        """``(start, end)`` of each range, in order."""
        return list(zip(self._starts, self._ends, strict=True))

    def gaps(self, rows: int) -> Iterator[tuple[int, int]]:
        """``(start, end)`` of what is missing below ``rows``."""
        at = 0
        for start, end in self.ranges():
            if at < start:
                yield at, min(start, rows)
            at = end
        if at < rows:
            yield at, rows

    def add(self, row: int) -> bool:
        """Add one row. False: it was there, or it would be one range more than a cursor holds.

        The lowest missing row can always be added.
        """
        at = bisect_right(self._starts, row)
        if at and row < self._ends[at - 1]:
            return False
        joins_left = at > 0 and self._ends[at - 1] == row
        joins_right = at < len(self._starts) and self._starts[at] == row + 1
        if joins_left and joins_right:
            self._ends[at - 1] = self._ends.pop(at)
            del self._starts[at]
        elif joins_left:
            self._ends[at - 1] = row + 1
        elif joins_right:
            self._starts[at] = row
        elif len(self._starts) >= MOST_RANGES and row:
            return False
        else:
            self._starts.insert(at, row)
            self._ends.insert(at, row + 1)
        self._count += 1
        return True

    def copy(self) -> "RowSet":
        """One of its own with the same rows."""
        other = RowSet()
        other._starts, other._ends, other._count = self._starts[:], self._ends[:], self._count
        return other

    def put(self, start: int, end: int) -> None:
        """Append a range that lies behind all others."""
        self._starts.append(start)
        self._ends.append(end)
        self._count += end - start


class Cursor:
    """The rows a reader has of each segment of one batch."""

    def __init__(self, batch_id: str) -> None:
        self._batch = batch_id.encode()
        self._segments: list[RowSet] = []

    def rows(self, place: int) -> RowSet:
        """Those of the segment at ``place``."""
        while len(self._segments) <= place:
            self._segments.append(RowSet())
        return self._segments[place]

    def to_text(self) -> str:
        """URL-safe, and only good for this batch."""
        body = bytearray()
        for rows in self._segments:
            ranges = rows.ranges()
            _write(body, len(ranges))
            at = 0
            for start, end in ranges:
                _write(body, start - at)
                _write(body, end - start)
                at = end
        head = bytes([_VERSION]) + self._checksum(bytes(body))
        return base64.urlsafe_b64encode(head + body).rstrip(b"=").decode()

    @classmethod
    def from_text(cls, batch_id: str, text: str) -> "Cursor":
        """Read ``to_text``; an empty text is the beginning. Raises InvalidRequest."""
        cursor = cls(batch_id)
        if not text:
            return cursor
        try:
            cursor._read(_decoded(text))
        except (ValueError, IndexError, StopIteration):
            raise InvalidRequest(
                "after is not a cursor of this batch.", param="after", code="invalid_value"
            ) from None
        return cursor

    def _read(self, packed: bytes) -> None:
        body = packed[_HEAD:]
        if packed[0] != _VERSION or packed[1:_HEAD] != self._checksum(body):
            raise ValueError("another batch")
        numbers = _numbers(body)
        for count in numbers:
            rows = RowSet()
            at = 0
            for _ in range(count):
                start = at + next(numbers)
                at = start + next(numbers)
                rows.put(start, at)
            self._segments.append(rows)

    def _checksum(self, body: bytes) -> bytes:
        return zlib.crc32(self._batch + body).to_bytes(4)


def _decoded(text: str) -> bytes:
    if len(text) > _LONGEST or not text.isascii():
        raise ValueError("too long")
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except binascii.Error as error:
        raise ValueError("not base64") from error


def _write(body: bytearray, number: int) -> None:
    while number >= _MORE:
        body.append(_MORE | number & (_MORE - 1))
        number >>= 7
    body.append(number)


def _numbers(body: bytes) -> Iterator[int]:
    at = 0
    while at < len(body):
        number, shift = 0, 0
        while True:
            byte = body[at]
            at += 1
            number |= (byte & (_MORE - 1)) << shift
            shift += 7
            if byte < _MORE:
                break
            if shift > _MOST_BITS:
                raise ValueError("too large")
        yield number
