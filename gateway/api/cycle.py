"""One request and its answer on a connection: uvicorn's cycle with a shorter way out.

The head of an answer whose length is known waits for the body and goes out with it, in one write.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

#: Characters that a head has in its line ends alone.
_CONTROL = bytes([*range(9), *range(10, 32), 127])
_CHUNK = b"%x\r\n%b\r\n"
_BODILESS = frozenset({204, 304})


def cut_off(cycle: RequestResponseCycle) -> None:
    """Nobody is there for the answer: the application hears of it, and nothing is written."""
    cycle.disconnected = not cycle.response_complete
    cycle.message_event.set()


class Cycle(RequestResponseCycle):
    """Sends what the application answers. Names of headers come in lower case."""

    _head = b""
    _open_end = False

    async def send(self, message: Any) -> None:
        """Take one ASGI message; waits while the caller does not read."""
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected:
            return
        kind = message["type"]
        if kind == "http.response.start" and not self.response_started:
            self._start(message["status"], message.get("headers", ()))
        elif kind == "http.response.body" and self.response_started and not self.response_complete:
            self._write(message.get("body", b""), more=message.get("more_body", False))
        else:
            raise RuntimeError(f"{kind} is out of place")

    def send_now(self, body: bytes) -> bool:
        """Send a part of a streamed body; false, and nothing is sent, when that would be a wait."""
        if not self.chunked_encoding or self.disconnected or self.response_complete:
            return False
        if not self.response_started or self.flow.write_paused:
            return False
        self.transport.write(_CHUNK % (len(body), body))
        return True

    def _start(self, status: int, headers: Sequence[tuple[bytes, bytes]]) -> None:
        self.response_started = True
        if self.waiting_for_100_continue:
            # Whether the caller sends its body now cannot be known: nothing else is read.
            self.keep_alive = self.keep_alive and not self.more_body
            self.waiting_for_100_continue = False
        lines = [STATUS_LINE[status], *(b"%b: %b\r\n" % (name, value) for name, value in headers)]
        lines += self._framing(status, dict(headers))
        head = b"".join([*lines, b"\r\n"])
        if len(head) - len(head.translate(None, _CONTROL)) != 2 * len(lines) + 2:
            raise RuntimeError("a header of the answer has a control character")
        if self.chunked_encoding or self._open_end:
            self.transport.write(head)
        else:
            self._head = head

    def _framing(self, status: int, given: Mapping[bytes, bytes]) -> Iterator[bytes]:
        """Note how the body ends and whether the connection stays; the lines that tell it."""
        length = given.get(b"content-length")
        if length is not None:
            self.expected_content_length = int(length)
        elif self.scope["method"] != "HEAD" and status not in _BODILESS:
            if self.scope["http_version"] < "1.1":
                self._open_end = True  # chunks came with 1.1; the end of the connection is the end
            else:
                self.chunked_encoding = True
                yield b"transfer-encoding: chunked\r\n"
        if b"close" in given.get(b"connection", b"").lower():
            self.keep_alive = False
        elif not self.keep_alive:
            yield b"connection: close\r\n"

    def _write(self, body: bytes, *, more: bool) -> None:
        data = self._head + self._framed(body, more=more)
        self._head = b""
        if data:
            self.transport.write(data)
        if more:
            return
        self.response_complete = True
        self.message_event.set()
        self.on_response()

    def _framed(self, body: bytes, *, more: bool) -> bytes:
        if self.scope["method"] == "HEAD":
            return b""
        if self.chunked_encoding:
            chunk = _CHUNK % (len(body), body) if body else b""
            return chunk if more else chunk + b"0\r\n\r\n"
        left = self.expected_content_length = self.expected_content_length - len(body)
        if (left < 0 or (left and not more)) and not self._open_end:
            raise RuntimeError("the answer does not have its declared length")
        return body
