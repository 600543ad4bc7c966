"""Sending webhooks to addresses that customers chose, and to none that they must not reach.

The addresses that a connection is made to are those that were checked: no name is resolved twice.
"""

import asyncio
import ipaddress
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import aiohttp
import httpx
from httpx_aiohttp import AiohttpTransport

from gateway.core.errors import UpstreamFailed, UpstreamRefused, UpstreamTimeout
from gateway.providers.transport import TRANSPORT_ERRORS

if TYPE_CHECKING:
    from aiohttp.abc import ResolveResult
    from aiohttp.tracing import Trace

_SECONDS = 10.0
_TARGET = "webhook"
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


class WebhookSender:
    """Posts bodies. ``allow_private`` lifts the rule about addresses: for closed networks."""

    def __init__(self, *, allow_private: bool = False, seconds: float = _SECONDS) -> None:
        self._seconds = seconds
        self._client = httpx.AsyncClient(
            transport=AiohttpTransport(client=lambda: _session(allow_private)),
            follow_redirects=False,
            trust_env=False,
        )

    async def send(self, url: str, headers: Mapping[str, str], body: bytes) -> None:
        """One POST. Raises UpstreamError unless the answer is 2xx; what it says is not read.

        The error's text holds no address.
        """
        try:
            async with (
                asyncio.timeout(self._seconds),
                self._client.stream("POST", url, headers=headers, content=body) as answer,
            ):
                status = answer.status_code
        except TimeoutError:
            raise UpstreamTimeout("No answer in time.", target=_TARGET) from None
        except TRANSPORT_ERRORS as error:
            if _forbidden(error):
                raise UpstreamRefused(
                    "The address is not public.", target=_TARGET, code="private_address"
                ) from None
            raise UpstreamRefused("No connection.", target=_TARGET) from None
        except (httpx.InvalidURL, ValueError):
            raise UpstreamRefused("Not an address.", target=_TARGET) from None
        if not httpx.codes.is_success(status):
            raise UpstreamFailed(f"The answer was {status}.", target=_TARGET, status=status)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()


class PrivateAddress(OSError):
    """The name leads to an address that is not public."""


class PublicOnly(aiohttp.TCPConnector):
    """Connects to public addresses; a name with any other is refused as a whole."""

    async def _resolve_host(
        self, host: str, port: int, traces: "Sequence[Trace] | None" = None
    ) -> "list[ResolveResult]":
        found = await super()._resolve_host(host, port, traces)
        if not all(is_public(result["host"]) for result in found):
            raise PrivateAddress(host)
        return found


def is_public(address: str) -> bool:
    """Whether an IP address is one of the open internet, whatever form it is wrapped in."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        if ip in _NAT64:
            return is_public(str(ipaddress.IPv4Address(int(ip) & 0xFFFF_FFFF)))
        inner = ip.ipv4_mapped or ip.sixtofour
        if inner is not None:
            return is_public(str(inner))
    return ip.is_global and not (ip.is_multicast or ip.is_reserved or ip.is_unspecified)


def _session(allow_private: bool) -> aiohttp.ClientSession:
    kind = aiohttp.TCPConnector if allow_private else PublicOnly
    return aiohttp.ClientSession(
        connector=kind(force_close=True, use_dns_cache=False),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding"),
    )


def _forbidden(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, PrivateAddress):
            return True
        error = error.__cause__ or error.__context__
    return False
