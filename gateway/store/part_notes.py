"""What stands before each line of a part file, so that the part alone says what was delivered.

A note is one line of JSON, always 128 bytes long: place of the segment in its job, row, hour of
the bill, flags, tokens, length of the line after it, and a checksum over both. A line that was
cut off by a crash has no note that fits, and is not there.
"""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import orjson

from gateway.core.usage import Usage
from gateway.core.work import PartRef

NOTE_BYTES = 128
_FIGURES = 10
_MOST = 2**32 - 1
_GOOD, _ESTIMATED = 1, 2


@dataclass(frozen=True, slots=True)
class PartNote:
    """Whose line it is and what it is billed: row ``index`` of segment ``<job>.<place>``."""

    place: int
    index: int
    ok: bool
    usage: Usage
    hour: str


def noted(note: PartNote, line: bytes) -> bytes:
    """The note and its line, as they are written."""
    usage = note.usage
    flags = _GOOD * note.ok + _ESTIMATED * usage.estimated
    figures = [note.place, note.index, int(note.hour), flags]
    tokens = (usage.prompt, usage.completion, usage.cached, usage.reasoning)
    figures += [*(min(count, _MOST) for count in tokens), len(line)]
    return orjson.dumps([*figures, _checksum(figures, line)]).ljust(NOTE_BYTES - 1) + b"\n" + line


def split(text: bytes) -> tuple[PartNote, bytes] | None:
    """The note and line at the start of ``text``; None when they are not whole."""
    figures = _figures(text[:NOTE_BYTES])
    if figures is None:
        return None
    *figures, length, checksum = figures
    line = text[NOTE_BYTES : NOTE_BYTES + length]
    if len(line) != length or _checksum([*figures, length], line) != checksum:
        return None
    place, index, hour, flags, *tokens = figures
    prompt, completion, cached, reasoning = tokens
    usage = Usage(prompt, completion, cached, reasoning, bool(flags & _ESTIMATED))
    return PartNote(place, index, bool(flags & _GOOD), usage, f"{hour:010d}"), line


def scan(path: Path, number: int) -> Iterator[tuple[PartNote, PartRef]]:
    """The whole lines of part ``number`` in their order, up to the first that is not whole."""
    with path.open("rb") as file:
        offset = 0
        while figures := _figures(head := file.read(NOTE_BYTES)):
            found = split(head + file.read(figures[-2]))
            if found is None:
                return
            note, line = found
            yield note, PartRef(number, offset + NOTE_BYTES, len(line))
            offset += NOTE_BYTES + len(line)


def _figures(head: bytes) -> list[int] | None:
    try:
        figures = orjson.loads(head)
    except orjson.JSONDecodeError:
        return None
    whole = isinstance(figures, list) and len(figures) == _FIGURES
    return figures if whole and all(type(figure) is int for figure in figures) else None


def _checksum(figures: list[int], line: bytes) -> int:
    return zlib.crc32(line, zlib.crc32(orjson.dumps(figures)))
