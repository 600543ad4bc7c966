"""Events that differ from an earlier one in nothing but their text need not be parsed."""

import re
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

    def sizes(self, piece: bytes) -> list[int] | None:
        """Bytes of text in each event of a piece; None: it must be looked into.

        The piece holds whole events, each a chunk like the last one learned.
        """
        before, after, sizes = self._before, self._after, list[int]()
        *events, rest = piece.split(b"\n\n")
        if rest or not before:
            return None
        try:
            for event in events:
                if not (event.startswith(before) and event.endswith(after)):
                    return None
                text = event[len(before) : len(event) - len(after)]
                if not _PLAIN(text.decode()):
                    return None
                sizes.append(len(text))
        except UnicodeDecodeError:
            return None
        return sizes

    def learn(self, data: bytes, chunk: dict[str, Any], choices: list[dict[str, Any]]) -> None:
        """Remember ``data``, the text of ``chunk``, if it holds one piece of content alone."""
        if len(choices) != 1 or choices[0].get("finish_reason") or chunk.get("usage"):
            return
        start = data.find(_MEMBER) + len(_MEMBER)
        end = data.find(b'"', start)
        told = (choices[0].get("delta") or {}).get("content")
        if start >= len(_MEMBER) and end > start and data[start:end].decode() == told:
            self._before, self._after = b"data: " + data[:start], data[end:]
