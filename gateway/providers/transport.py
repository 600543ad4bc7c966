"""The HTTP client's connections: httpx's interface over aiohttp, and what may go wrong there."""

import asyncio
from collections.abc import Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING

import aiohttp
import httpx
from httpx_aiohttp import AiohttpTransport

from gateway.core.errors import (
    OutcomeUnknown,
    StreamInterrupted,
    UpstreamError,
    UpstreamFailed,
    UpstreamRefused,
    UpstreamTimeout,
)

if TYPE_CHECKING:
    from aiohttp.client_reqrep import ConnectionKey
    from aiohttp.connector import Connection
    from aiohttp.tracing import Trace

#: Whether the connection of the current task's request had served another one before.
reused: ContextVar[bool] = ContextVar("reused", default=False)
#: Set to have the next request of the current task open a connection of its own.
fresh_only: ContextVar[bool] = ContextVar("fresh_only", default=False)

TRANSPORT_ERRORS = (httpx.HTTPError, aiohttp.ClientError, OSError, asyncio.TimeoutError)
KEEP_ALIVE_SECONDS = 75.0
READ_BUFFER_BYTES = 256 * 1024


class LastUsedFirst(aiohttp.TCPConnector):
    """Takes the idle connection used last, and notes whether there was one."""

    async def _get(self, key: "ConnectionKey", traces: "list[Trace]") -> "Connection | None":
        if fresh_only.get():
            reused.set(False)
            return None
        if idle := self._conns.get(key):
            idle.rotate(1)
        connection = await super()._get(key, traces)
        reused.set(connection is not None)
        return connection


class PreparedRequest(httpx.Request):
    """A POST whose URL and fixed headers were made ready before.

    What the base class would work out for each request again is left out: the transport knows the
    target's headers, and length and host are the client library's to write.
    """

    def __init__(
        self,
        url: httpx.URL,
        request_id: str,
        body: bytes,
        connect: float,
        bearer: bytes | None = None,
    ) -> None:
        self.method = "POST"
        self.url = url
        own = [(b"X-Request-Id", request_id.encode())]
        self.headers = httpx.Headers(own if not bearer else [*own, (b"Authorization", bearer)])
        self.extensions = {"timeout": {"connect": connect}}
        self.stream = httpx.ByteStream(body)
        self._content = body


def new_transport(headers: Mapping[str, str]) -> httpx.AsyncBaseTransport:
    """A transport with its own connections and no hidden cap on their number.

    ``headers`` go with every request. The other limits than that of the connect phase are not the
    transport's.
    """
    return AiohttpTransport(client=lambda: _session(headers))


def _session(headers: Mapping[str, str]) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        headers=headers,
        connector=LastUsedFirst(limit=0, keepalive_timeout=KEEP_ALIVE_SECONDS),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding"),
        timeout=aiohttp.ClientTimeout(),
        read_bufsize=READ_BUFFER_BYTES,
    )


def closed_before_answer(error: BaseException) -> bool:
    """Whether the connection ended before any byte of an answer."""
    cause = error.__cause__ or error
    if isinstance(cause, aiohttp.ClientConnectorError | aiohttp.ServerTimeoutError):
        return False
    if isinstance(cause, aiohttp.ServerDisconnectedError):
        return isinstance(cause.message, str)
    return isinstance(cause, aiohttp.ClientOSError | ConnectionError)


def before_head(error: BaseException, target: str) -> UpstreamError:
    """What a transport error means when no head has come. The text holds no address."""
    cause = error.__cause__ or error
    if isinstance(cause, aiohttp.ConnectionTimeoutError):
        return UpstreamTimeout(
            "The target could not be connected to within its connect limit.",
            target=target,
            code="connect_timeout",
        )
    if isinstance(cause, aiohttp.ClientConnectorError):
        return UpstreamRefused("The target cannot be reached.", target=target)
    if isinstance(cause, aiohttp.ClientResponseError):
        return UpstreamFailed("The target's answer is not valid HTTP.", target=target)
    return OutcomeUnknown("The target closed the connection without an answer.", target=target)


def in_body(target: str) -> UpstreamError:
    """What a transport error means after the head."""
    return StreamInterrupted("The target ended its answer early.", target=target)
