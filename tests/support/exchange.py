"""One request seen by the scripted upstream, and what a script may do with its connection."""

import asyncio
import json
import socket
import struct
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

_RESET = struct.pack("ii", 1, 0)


@dataclass
class Seen:
    """A request as it arrived, and what became of it. Times are ``time.monotonic()`` seconds.

    ``connection`` numbers the TCP connections; ``reused`` says that an earlier request came over
    it. ``peer_closed_at`` is set when the caller closed before the answer was complete.
    """

    at: float
    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    connection: int
    reused: bool
    status: int | None = None
    first_byte_at: float | None = None
    completed_at: float | None = None
    peer_closed_at: float | None = None
    usage: dict[str, Any] | None = None
    sent: list[float] = field(default_factory=list)

    @property
    def json(self) -> dict[str, Any]:
        """The body as a JSON object; empty when it is none."""
        try:
            value = json.loads(self.body)
        except ValueError:
            return {}
        return value if isinstance(value, dict) else {}

    @property
    def model(self) -> str:
        """The body's ``model``."""
        return str(self.json.get("model", ""))

    @property
    def text(self) -> str:
        """Every string of the prompt, joined; for rules by content."""
        return self.body.decode("utf-8", "replace")

    @property
    def completed(self) -> bool:
        """Whether the whole answer was written."""
        return self.completed_at is not None

    @property
    def open(self) -> bool:
        """Whether the answer still runs."""
        return self.completed_at is None and self.peer_closed_at is None


class Exchange:
    """The server's side of one request. A script writes the answer with it, byte by byte.

    ``headers`` go with every head.
    """

    def __init__(self, seen: Seen, transport: asyncio.Transport) -> None:
        self.seen = seen
        self.headers: dict[str, str] = {}
        self._transport = transport
        self._chunked = False
        self.keep_alive = True

    def raw(self, data: bytes) -> None:
        """Write ``data`` as it is, in one write."""
        if self.seen.first_byte_at is None:
            self.seen.first_byte_at = time.monotonic()
        self.seen.sent.append(time.monotonic())
        self._transport.write(data)

    def head(
        self,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        *,
        length: int | None = None,
    ) -> None:
        """Write the status line and headers; without ``length`` the body is chunked."""
        self.seen.status = status
        self._chunked = length is None
        framing = {"transfer-encoding": "chunked"} if length is None else {}
        if length is not None:
            framing["content-length"] = str(length)
        phrase = HTTPStatus(status).phrase if status in {s.value for s in HTTPStatus} else "Custom"
        lines = [f"HTTP/1.1 {status} {phrase}"]
        lines += [
            f"{name}: {value}"
            for name, value in {**framing, **self.headers, **(headers or {})}.items()
        ]
        self.raw(("\r\n".join(lines) + "\r\n\r\n").encode())

    def chunk(self, data: bytes) -> None:
        """Write a piece of the body in one write, framed when the body is chunked."""
        if data:
            self.raw(b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data)

    def end(self) -> None:
        """End the body properly; the connection stays open."""
        self.seen.completed_at = time.monotonic()
        if self._chunked:
            self._transport.write(b"0\r\n\r\n")

    def full(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        """A complete answer in one go."""
        self.head(status, headers, length=len(body))
        self.chunk(body)
        self.end()

    def json(self, value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        """A complete JSON answer."""
        body = json.dumps(value, ensure_ascii=False).encode()
        self.full(status, body, {"content-type": "application/json", **(headers or {})})

    def close(self) -> None:
        """Close the connection cleanly (FIN), whatever was written."""
        self.keep_alive = False
        self._transport.close()

    def reset(self) -> None:
        """Drop the connection with a TCP reset."""
        self.keep_alive = False
        sock: socket.socket = self._transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self._transport.abort()
