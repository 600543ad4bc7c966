"""The connections to one target: made when there is no idle one, kept for a while after use."""

import asyncio
import socket
import ssl
from collections import deque
from typing import Any
from urllib.parse import SplitResult

import aiohappyeyeballs

from gateway.core.errors import UpstreamRefused, UpstreamTimeout
from gateway.providers.connection import Connection

KEEP_ALIVE_SECONDS = 75.0
_KNOWN_SECONDS = 10.0
_NEXT_ADDRESS_AFTER = 0.25
_PORTS = {"http": 80, "https": 443}

_Addresses = list[tuple[Any, ...]]


class Connector:
    """Connections to the host of ``url``; there is no cap on their number.

    Of idle ones the last used is taken, so that a burst's connections can end.
    """

    def __init__(self, target: str, url: SplitResult) -> None:
        self.target = target
        self._host = url.hostname or ""
        self._port = url.port or _PORTS.get(url.scheme, 80)
        self._tls = _tls() if url.scheme == "https" else None
        self._idle: deque[Connection] = deque()
        self._all: set[Connection] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._addresses: _Addresses = []
        self._known_until = 0.0

    def idle(self) -> Connection | None:
        """The idle connection used last."""
        while self._idle:
            connection = self._idle.pop()
            if connection.kept:
                return connection
            self._all.discard(connection)
        return None

    async def connect(self, seconds: float) -> Connection:
        """A new connection. Raises UpstreamTimeout after ``seconds``, UpstreamRefused."""
        try:
            async with asyncio.timeout(seconds):
                made = await self._connected()
        except TimeoutError:
            raise UpstreamTimeout(
                "The target could not be connected to within its connect limit.",
                target=self.target,
                code="connect_timeout",
            ) from None
        except (OSError, ssl.SSLError) as error:
            error.__traceback__ = None  # of frames that hold the error
            self._known_until = 0.0
            raise UpstreamRefused("The target cannot be reached.", target=self.target) from None
        self._all.add(made)
        return made

    def give_back(self, connection: Connection) -> None:
        """Keep a connection whose answer was read to its end; close any other."""
        if not (connection.kept and connection.ended):
            connection.drop()
            self._all.discard(connection)
            return
        loop = asyncio.get_running_loop()
        connection.idle_since = loop.time()
        self._idle.append(connection)
        if self._timer is None:
            self._timer = loop.call_later(KEEP_ALIVE_SECONDS, self._sweep)

    def close(self) -> None:
        """Close every connection."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._idle.clear()
        while self._all:
            self._all.pop().abort()

    async def _connected(self) -> Connection:
        loop = asyncio.get_running_loop()
        if loop.time() > self._known_until:
            self._addresses = await loop.getaddrinfo(
                self._host, self._port, type=socket.SOCK_STREAM
            )
            self._known_until = loop.time() + _KNOWN_SECONDS
        line = await aiohappyeyeballs.start_connection(
            self._addresses, happy_eyeballs_delay=_NEXT_ADDRESS_AFTER
        )
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            _, made = await loop.create_connection(
                lambda: Connection(self.target),
                sock=line,
                ssl=self._tls,
                server_hostname=self._host if self._tls else None,
            )
        except BaseException:
            line.close()
            raise
        return made

    def _sweep(self) -> None:
        """Close what has been idle for long; the oldest stand first."""
        loop = asyncio.get_running_loop()
        while self._idle:
            oldest = self._idle[0]
            left = oldest.idle_since + KEEP_ALIVE_SECONDS - loop.time()
            if left > 0 and oldest.kept:
                self._timer = loop.call_later(left, self._sweep)
                return
            self._idle.popleft()
            self._all.discard(oldest)
            oldest.abort()
        self._timer = None


def _tls() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context
