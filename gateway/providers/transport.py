"""httpx over aiohttp, for calls where microseconds do not count, and what may go wrong there."""

import asyncio
from collections.abc import Mapping

import aiohttp
import httpx
from httpx_aiohttp import AiohttpTransport

from gateway.core.errors import (
    OutcomeUnknown,
    UpstreamError,
    UpstreamFailed,
    UpstreamRefused,
    UpstreamTimeout,
)

TRANSPORT_ERRORS = (httpx.HTTPError, aiohttp.ClientError, OSError, asyncio.TimeoutError)
READ_BUFFER_BYTES = 256 * 1024


def new_transport(headers: Mapping[str, str]) -> httpx.AsyncBaseTransport:
    """A transport with its own connections and no hidden cap on their number.

    ``headers`` go with every request. The other limits than that of the connect phase are not the
    transport's.
    """
    return AiohttpTransport(client=lambda: _session(headers))


def _session(headers: Mapping[str, str]) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        headers=headers,
        connector=aiohttp.TCPConnector(limit=0),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding"),
        timeout=aiohttp.ClientTimeout(),
        read_bufsize=READ_BUFFER_BYTES,
    )


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
