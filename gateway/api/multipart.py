"""An upload in multipart/form-data, received piece by piece.

The file's bytes go out in steps of 256 KB and are never held or looked at; the other fields are
small texts. Parts may come in any order.
"""

from collections.abc import AsyncIterable, Awaitable, Callable
from dataclasses import dataclass, field

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from gateway.core.errors import InvalidRequest

STEP = 262_144
_LONGEST_FIELD = 65_536
_MOST_PARTS = 32

Sink = Callable[[bytes], Awaitable[None]]


@dataclass(slots=True)
class Form:
    """What was received: text fields, the file's name (None without a file part)."""

    fields: dict[str, str] = field(default_factory=dict)
    filename: str | None = None


async def receive(content_type: str, body: AsyncIterable[bytes], sink: Sink) -> Form:
    """Read ``body`` to its end, handing the part named ``file`` to ``sink`` in steps.

    Raises InvalidRequest when the body is not well-formed multipart/form-data.
    """
    boundary = _boundary(content_type)
    try:
        parts = _Parts(boundary)
    except FormParserError:
        raise _malformed() from None
    async for chunk in body:
        parts.feed(chunk)
        while len(parts.content) >= STEP:
            await sink(bytes(parts.content[:STEP]))
            del parts.content[:STEP]
    parts.end()
    if parts.content:
        await sink(bytes(parts.content))
    return parts.form


class _Parts:
    """Follows the parser's events; ``content`` holds file bytes not yet taken."""

    def __init__(self, boundary: bytes) -> None:
        self.form = Form()
        self.content = bytearray()
        self._headers: dict[bytes, bytes] = {}
        self._header = bytearray()
        self._value = bytearray()
        self._name = ""
        self._is_file = False
        self._text = bytearray()
        self._parts = 0
        self._ended = False
        self._parser = MultipartParser(
            boundary,
            {
                "on_part_begin": self._part_begin,
                "on_part_data": self._part_data,
                "on_part_end": self._part_end,
                "on_header_field": self._header_field,
                "on_header_value": self._header_value,
                "on_header_end": self._header_end,
                "on_headers_finished": self._headers_finished,
                "on_end": self._end,
            },
        )

    def feed(self, chunk: bytes) -> None:
        """Parse more of the body."""
        try:
            self._parser.write(chunk)
        except FormParserError:
            raise _malformed() from None

    def end(self) -> None:
        """The body is over. Raises InvalidRequest when it ended early."""
        if not self._ended:
            raise _malformed()

    def _part_begin(self) -> None:
        self._parts += 1
        if self._parts > _MOST_PARTS:
            raise InvalidRequest(f"The form has more than {_MOST_PARTS} parts.")
        self._headers.clear()
        self._text.clear()

    def _header_field(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _header_end(self) -> None:
        self._headers[bytes(self._header).lower()] = bytes(self._value)
        self._header.clear()
        self._value.clear()

    def _headers_finished(self) -> None:
        _, options = parse_options_header(self._headers.get(b"content-disposition", b""))
        self._name = _decoded(options.get(b"name", b""))
        self._is_file = self._name == "file"
        if self._is_file:
            if b"filename" not in options:
                raise InvalidRequest(
                    "'file' came as a text: it must be a file with a name, as curl's "
                    "-F file=@PATH sends it.",
                    param="file",
                )
            if self.form.filename is not None:
                raise InvalidRequest("There must be one file part.", param="file")
            self.form.filename = _decoded(options.get(b"filename", b""))

    def _part_data(self, data: bytes, start: int, end: int) -> None:
        if self._is_file:
            self.content += data[start:end]
            return
        self._text += data[start:end]
        if len(self._text) > _LONGEST_FIELD:
            name = self._name[:64]
            message = f"{name} is longer than {_LONGEST_FIELD} bytes."
            raise InvalidRequest(message, param=name)

    def _part_end(self) -> None:
        if not self._is_file:
            self.form.fields[self._name] = _decoded(bytes(self._text))

    def _end(self) -> None:
        self._ended = True


def _boundary(content_type: str) -> bytes:
    kind, options = parse_options_header(content_type)
    boundary = options.get(b"boundary", b"")
    if kind != b"multipart/form-data" or not boundary:
        raise InvalidRequest("The body must be multipart/form-data with a boundary.")
    return boundary


def _decoded(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def _malformed() -> InvalidRequest:
    return InvalidRequest("The multipart body is malformed or incomplete.")
