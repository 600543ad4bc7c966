"""Server-sent events, split out of bytes that may be cut anywhere."""

import re
from collections.abc import AsyncIterator, Generator, Iterator
from typing import Any

from gateway.core.exact_json import dumps, loads, with_long_integers
from gateway.core.large_json import LARGE, TooManyValues, has_more
from gateway.core.nesting import too_deep
from gateway.providers.broken_answers import LONGEST_EVENT, MOST_PARTS, endless_event

_LINE_END = re.compile(rb"\r\n|\n|\r")
_LINE_COST = 64
_SPACE = 0x20
BOM = b"\xef\xbb\xbf"
DONE = b"[DONE]"


class EventSplitter:
    """Feeds on bytes, yields the data of each complete event.

    LF, CRLF and CR end a line; a space after the colon is optional; several data lines are joined
    by LF; comments, other fields, a byte order mark and events with empty data, which some proxies
    send to show life, are dropped. Bytes that do not end a line wait for more. An event named
    ``error`` comes as an object with the member ``error``, whatever its data is.
    """

    def __init__(self) -> None:
        self._rest = bytearray()
        self._data: list[bytes] = []
        self._size = 0
        self._is_error = False
        self._after_cr = False

    @property
    def pending(self) -> bool:
        """Whether part of an event waits for its end."""
        return bool(self._rest or self._data or self._is_error)

    def is_large(self, piece: bytes) -> bool:
        """Whether what ``piece`` may complete is better taken beside the event loop."""
        return self._waiting + len(piece) > LARGE

    @property
    def _waiting(self) -> int:
        """Bytes of the event that waits for its end."""
        return len(self._rest) + self._size

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """The events that ``piece`` completes. Raises ValueError when one grows without end."""
        if self._after_cr and piece:
            piece = piece.removeprefix(b"\n")
            self._after_cr = False
        text = piece
        if self._rest:
            ends = b"\n" in piece or b"\r" in piece
            self._rest += piece
            if not ends:
                self._check()
                return
            text = bytes(self._rest)
            self._rest.clear()
        if b"\r" in text or self._data or self._is_error:
            self._rest += yield from self._lines(text)
        else:
            *blocks, rest = text.split(b"\n\n")
            for block in blocks:
                # Data that ends with a space may be nothing but spaces.
                if block.startswith(b"data: ") and block[-1] > _SPACE and b"\n" not in block:
                    yield block[6:]
                else:
                    yield from self._lines(block + b"\n\n")
            # Whole lines are taken out now: what waits is never looked through twice.
            self._rest += (yield from self._lines(rest)) if b"\n" in rest else rest
        self._check()

    def _check(self) -> None:
        if self._waiting > LONGEST_EVENT:
            raise ValueError("an event is too long")

    def _lines(self, text: bytes) -> Generator[bytes, None, bytes]:
        """Take ``text`` line by line; returns what does not end a line."""
        # A CR at the very end may be half of a CRLF: the line ends with it all the same.
        self._after_cr = text.endswith(b"\r")
        start = 0
        for match in _LINE_END.finditer(text):
            line = text[start : match.start()]
            start = match.end()
            if line:
                self._line(line)
                continue
            if self._data and (event := self._taken()).strip():
                yield event
            self._is_error = False
        return text[start:]

    def _taken(self) -> bytes:
        event = b"\n".join(self._data)
        self._data, self._size = [], 0
        return _as_error(event) if self._is_error else event

    def end(self) -> Iterator[bytes]:
        """The last event, when the stream ended without the empty line after it."""
        if self._rest:
            rest = bytes(self._rest)
            self._rest.clear()
            yield from self._lines(rest + b"\n")
        if self._data and (event := self._taken()).strip():
            yield event

    def _line(self, line: bytes) -> None:
        if line.startswith(b"data:"):
            self._data.append(line[6:] if line[5:6] == b" " else line[5:])
            self._size += len(line) + _LINE_COST
        elif line.startswith(b"event:"):
            self._is_error = line[6:].strip() == b"error"
        elif line.startswith(BOM):
            self._line(line.lstrip(BOM))


def _as_error(data: bytes) -> bytes:
    try:
        value = parse_event(data)
    except ValueError:
        value = data.decode("utf-8", "replace")
    if isinstance(value, dict) and value.get("error"):
        return data
    return dumps({"error": value or "The target reported an error."})


def parse_event(data: bytes) -> Any:
    """The JSON of an event's data; one that was split over data lines inside a text is mended.

    Integers beyond 64 bits are kept.
    Raises ValueError when it is no JSON, or nested so deeply that it could not be written again;
    TooManyValues for one with so many parts that reading it would hold up everybody.
    """
    if len(data) > LARGE and has_more(data, b"{[", MOST_PARTS):
        raise TooManyValues
    try:
        value = loads(data)
    except ValueError:
        if b"\n" not in data:
            raise
        data = data.replace(b"\n", b"")
        value = loads(data)
    if too_deep(data, value):
        raise ValueError("nested too deeply")
    return with_long_integers(data, value)


async def events(pieces: AsyncIterator[bytes], target: str) -> AsyncIterator[bytes]:
    """The data of each event of a body, ``[DONE]`` included.

    Raises what reading the body raises, and UpstreamFailed when it is no event stream.
    """
    splitter = EventSplitter()
    try:
        async for piece in pieces:
            for event in splitter.feed(piece):
                yield event
        for event in splitter.end():
            yield event
    except ValueError:
        raise endless_event(target) from None
