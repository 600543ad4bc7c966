"""The server side of one HTTP/1.1 connection of the scripted upstream."""

import asyncio
import time
from typing import Protocol

import httptools

from tests.support.exchange import Exchange, Seen


class Owner(Protocol):
    """What a connection needs of its server."""

    requests: list[Seen]
    idle_close: float | None

    def joined(self, connection: "Connection") -> int:
        """Take note of a new connection; returns its number."""

    def left(self, connection: "Connection") -> None:
        """Take note of a closed connection."""

    async def answer(self, exchange: Exchange) -> None:
        """Answer one request."""


class Connection(asyncio.Protocol):
    """One TCP connection: parses requests, runs one answer at a time, notes the peer's leaving."""

    def __init__(self, upstream: Owner) -> None:
        self._upstream = upstream
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport | None = None
        self._number = 0
        self._served = 0
        self._seen: Seen | None = None
        self._idle: asyncio.TimerHandle | None = None
        self._target = b""
        self._headers: dict[str, str] = {}
        self._body = bytearray()
        self.task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._number = self._upstream.joined(self)

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self.drop()

    def eof_received(self) -> bool | None:
        self._peer_left()
        return None

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._upstream.left(self)
        self._peer_left()
        if self._idle is not None:
            self._idle.cancel()

    def drop(self) -> None:
        """Close at once, from our side."""
        if self._transport is not None:
            self._transport.abort()

    def on_url(self, url: bytes) -> None:
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode().lower()] = value.decode("latin-1")

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        assert self._transport is not None
        if self._idle is not None:
            self._idle.cancel()
        seen = Seen(
            at=time.monotonic(),
            method=self._parser.get_method().decode(),
            path=self._target.decode(),
            headers=self._headers,
            body=bytes(self._body),
            connection=self._number,
            reused=self._served > 0,
        )
        self._target, self._headers, self._body = b"", {}, bytearray()
        self._served += 1
        self._seen = seen
        self._upstream.requests.append(seen)
        self.task = asyncio.create_task(self._run(Exchange(seen, self._transport)))

    async def _run(self, exchange: Exchange) -> None:
        await self._upstream.answer(exchange)
        if self._upstream.idle_close is not None and self._transport is not None:
            loop = asyncio.get_running_loop()
            self._idle = loop.call_later(self._upstream.idle_close, self._transport.close)

    def _peer_left(self) -> None:
        seen = self._seen
        if seen is not None and seen.open:
            seen.peer_closed_at = time.monotonic()
        if self.task is not None and not self.task.done():
            self.task.cancel()
