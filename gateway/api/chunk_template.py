"""Events that differ from an earlier one in nothing but their text need not be parsed."""

import re
from collections.abc import Sequence
from typing import Any

_MEMBER = b'"content":"'
#: What stands for itself in a JSON string.
_PLAIN = re.compile(r'[^"\\\x00-\x1f]+').fullmatch


class ChunkTemplate:
    """Knows the bytes around the text of a chunk that was read and passed on as it was.

    Whatever has the same bytes around a plain text is a chunk as sound as that one: it has one
    choice with content, no end, no error and no usage.
    """

    def __init__(self) -> None:
        self._before = b""
        self._after = b""
        self._start = 0
        self._stop = 0

    def sizes(self, piece: bytes) -> Sequence[int]:
        """Bytes of text in each event of a piece; none: it must be looked into.

        The piece holds whole events, each a chunk like the last one learned.
        """
        if size := self._size(piece):
            return (size,)
        *events, rest = piece.split(b"\n\n")
        if len(events) == 1:
            return ()
        sizes = [self._size(event + b"\n\n") for event in events]
        return () if rest or 0 in sizes else sizes

    def _size(self, event: bytes) -> int:
        """Bytes of text in a piece that is one event and nothing else; 0: it is not."""
        if not (event.startswith(self._before) and event.endswith(self._after) and self._start):
            return 0
        text = event[self._start : self._stop]
        try:
            return len(text) if _PLAIN(text.decode()) else 0
        except UnicodeDecodeError:
            return 0

    def learn(self, data: bytes, chunk: dict[str, Any], choices: list[dict[str, Any]]) -> None:
        """Remember ``data``, the text of ``chunk``, if it holds one piece of content alone."""
        if len(choices) != 1 or choices[0].get("finish_reason") or chunk.get("usage"):
            return
        start = data.find(_MEMBER) + len(_MEMBER)
        end = data.find(b'"', start)
        told = (choices[0].get("delta") or {}).get("content")
        if start >= len(_MEMBER) and end > start and data[start:end].decode() == told:
            self._before, self._after = b"data: " + data[:start], data[end:] + b"\n\n"
            self._start, self._stop = len(self._before), -len(self._after)
