"""A target that speaks the OpenAI API over HTTP."""

import asyncio
import base64
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import SplitResult, quote, unquote, urlsplit

import gateway
from gateway.core.clock import Clock
from gateway.core.errors import ConfigError, OutcomeUnknown, UpstreamError
from gateway.core.targets import Timeouts, UpstreamCall
from gateway.providers.base import Reply
from gateway.providers.connection import Connection
from gateway.providers.connector import Connector
from gateway.providers.failures import failure
from gateway.providers.http_reply import HttpReply
from gateway.providers.scrubber import Scrubber
from gateway.providers.sse import BOM

LONGEST_ANSWER = 256 * 2**20
_FIRST_FAILURE = 300
_LONGEST_ERROR = 256 * 1024
_LONGEST_PAGE = 4 * 2**20
_IDLE_CLOSE_SECONDS = 0.5
_PATH = "/%:@!$&'()*+,;=~"


@dataclass(frozen=True, slots=True)
class Dialect:
    """Where a target differs from OpenAI's address and credential.

    ``key_header`` takes the key as it is, in place of a bearer token. With ``api_version`` paths
    and query are those of Azure's dated API, where the deployment is part of the path.
    """

    key_header: str | None = None
    api_version: str | None = None


OPENAI = Dialect()


class OpenAITarget:
    """Sends calls to ``base_url`` (ending in ``/v1`` as the vendor writes it; a query is kept).

    ``headers`` are the policy's own; of the client's headers none is ever sent. ``secrets`` are
    texts that must not show up in an error, besides the key and the address. An answer that is not
    streamed has at most ``longest_answer`` bytes.
    """

    longest_answer = LONGEST_ANSWER

    def __init__(
        self,
        name: str,
        base_url: str,
        clock: Clock,
        *,
        api_keys: Sequence[str] = (),
        headers: Mapping[str, str] | None = None,
        dialect: Dialect = OPENAI,
    ) -> None:
        self.name = name
        extra = dict(headers or {})
        self.scrub = Scrubber.of(base_url, *api_keys, *extra.values())
        # One key goes with every request; of several, each request carries its own.
        alone = api_keys[0] if len(api_keys) == 1 else None
        lines = [_key_line(key, dialect) for key in api_keys]
        self._keys = [f"{name}: {value}\r\n".encode() for name, value in lines]
        self._version = dialect.api_version
        self._clock = clock
        self._url = urlsplit(base_url)
        self._connector = Connector(name, self._url)
        self._fixed = _head(
            name,
            {
                "Host": _host(self._url),
                "Content-Type": "application/json",
                "Accept": "*/*",
                "Accept-Encoding": "identity",
                "User-Agent": f"headway/{gateway.__version__}",
                **_credential(self._url, alone, dialect),
                **extra,
            },
        )
        self._heads: dict[str, bytes] = {}

    async def send(self, call: UpstreamCall) -> Reply:
        """One attempt, as ``Target.send`` promises.

        A reused connection that closed within half a second, before any byte of the answer, is
        replaced once, silently: the target had closed it as idle, which shows within moments of
        sending. One that closed later may have worked on the call, so its outcome is unknown.
        """
        clock = asyncio.get_running_loop().time
        ends = clock() + call.timeouts.total
        request = self._request(call)
        connection = self._connector.idle()
        if connection is None:
            connection = await self._connect(call)
        try:
            sent = clock()
            try:
                await connection.send(request, call.timeouts, ends, call.on_sent)
            except OutcomeUnknown:
                idle = connection.used and connection.silent
                if not idle or clock() - sent > _IDLE_CLOSE_SECONDS:
                    raise
                self._connector.give_back(connection)
                connection = await self._connect(call)
                await connection.send(request, call.timeouts, ends, call.on_sent)
        except BaseException:
            self._connector.give_back(connection)
            raise
        reply = HttpReply(connection, self._connector, self._clock, self.longest_answer)
        if reply.status >= _FIRST_FAILURE:
            raise await self._failure(reply)
        return reply

    async def get_page(self, path: str, seconds: float) -> tuple[int, bytes]:
        """Status and body of ``GET path`` below the server's root. Raises UpstreamError.

        The root is the base URL without ``/v1``. A connection of its own, so that a call never
        finds one that a page has spoilt.
        """
        root = self._url.path.rstrip("/").removesuffix("/v1")
        line = f"GET {quote(root + path, safe=_PATH + '?')} HTTP/1.1\r\n".encode("ascii")
        key = self._keys[0] if len(self._keys) > 1 else b""
        limits = Timeouts(seconds, seconds, seconds, seconds)
        connection = await self._connector.connect(seconds)
        try:
            ends = asyncio.get_running_loop().time() + seconds
            await connection.send(b"%b%b%b\r\n" % (line, self._fixed, key), limits, ends)
            body = bytearray()
            with contextlib.suppress(StopAsyncIteration):
                while len(body) <= _LONGEST_PAGE:
                    body += await connection.piece()
            return connection.status, bytes(body)
        finally:
            connection.abort()
            self._connector.give_back(connection)

    async def aclose(self) -> None:
        """Close every connection."""
        self._connector.close()

    async def _connect(self, call: UpstreamCall) -> Connection:
        limits = call.timeouts
        return await self._connector.connect(min(limits.connect, limits.first_byte, limits.total))

    def _request(self, call: UpstreamCall) -> bytes:
        below = call.path if self._version is None else _in_deployment(call)
        head = self._heads.get(below)
        if head is None:
            path = quote(self._url.path.rstrip("/") + below, safe=_PATH)
            line = f"POST {path}{self._query()} HTTP/1.1\r\n".encode("ascii")
            head = self._heads[below] = line + self._fixed
        return b"%bX-Request-Id: %b\r\n%b%bContent-Length: %d\r\n\r\n%b" % (
            head,
            call.request_id.encode(),
            call.head,
            self._keys[call.key] if len(self._keys) > 1 else b"",
            len(call.body),
            call.body,
        )

    def _query(self) -> str:
        version = "" if self._version is None else f"api-version={quote(self._version, safe='')}"
        query = "&".join(filter(None, (self._url.query, version)))
        return f"?{query}" if query else ""

    async def _failure(self, reply: HttpReply) -> UpstreamError:
        """Read a refused answer to its end, as far as it is short and whole, and classify it."""
        body = bytearray()
        try:
            async for piece in reply.body:
                body += piece
                if len(body) > _LONGEST_ERROR:
                    break
        except UpstreamError:
            body.clear()
        finally:
            await reply.aclose()
        error = failure(
            self.name,
            reply.status,
            reply.headers,
            bytes(body).removeprefix(BOM),
            self.scrub,
            self._clock.now,
        )
        error.rates = reply.rates
        return error


def _in_deployment(call: UpstreamCall) -> str:
    return f"/deployments/{quote(call.model, safe='')}{call.path}"


def _host(url: SplitResult) -> str:
    """The place as it is written in the address, without a user's name."""
    return url.netloc.rpartition("@")[2].encode("idna").decode() if url.netloc else ""


def _key_line(key: str, dialect: Dialect) -> tuple[str, str]:
    header = dialect.key_header
    return ("Authorization", f"Bearer {key}") if header is None else (header, key)


def _credential(url: SplitResult, key: str | None, dialect: Dialect) -> dict[str, str]:
    if key is not None:
        return dict([_key_line(key, dialect)])
    if url.username is None:
        return {}
    pair = f"{unquote(url.username)}:{unquote(url.password or '')}"
    return {"Authorization": "Basic " + base64.b64encode(pair.encode()).decode()}


def _head(target: str, headers: Mapping[str, str]) -> bytes:
    """Header lines, of one name the last. Raises ConfigError for one that would be two lines."""
    lines = {name.lower(): f"{name}: {value}" for name, value in headers.items()}.values()
    if any("\r" in line or "\n" in line for line in lines):
        raise ConfigError(f"target {target}: a header or key has a line break")
    return "".join(f"{line}\r\n" for line in lines).encode()
