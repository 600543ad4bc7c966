"""A successful answer of a target over HTTP, while its body is on its way."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

from gateway.core.clock import Clock
from gateway.core.errors import UpstreamError
from gateway.core.large_json import LARGE
from gateway.core.rates import RateLimits
from gateway.providers.broken_answers import too_long
from gateway.providers.connection import Connection
from gateway.providers.connector import Connector
from gateway.providers.rates import rates_of
from gateway.providers.sse import BOM

_END_SECONDS = 0.2


class HttpReply:
    """A successful answer, as ``Reply`` promises."""

    def __init__(
        self, connection: Connection, connector: Connector, clock: Clock, longest: int
    ) -> None:
        self.status = connection.status
        self._raw = connection.headers
        self._connection: Connection | None = connection
        self._connector = connector
        self._clock = clock
        self._longest = longest

    @property
    def body(self) -> AsyncIterator[bytes]:
        """The reply itself: kept as a member it would be garbage that only a collection finds."""
        return self

    @property
    def headers(self) -> Mapping[str, str]:
        """The head's lines by their lower-case names."""
        return {name.decode("latin-1"): value.decode("latin-1") for name, value in self._raw}

    @property
    def rates(self) -> RateLimits | None:
        """The limits that the answer tells of."""
        return rates_of(self._raw, self._clock.now)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    def __anext__(self) -> Awaitable[bytes]:
        return _nothing() if self._connection is None else self._connection.piece()

    def offer_to(self, taker: Callable[[bytes], bool]) -> None:
        """Until the reply is closed, offer ``taker`` what comes while the next piece is awaited."""
        if self._connection is not None:
            self._connection.taker = taker

    async def read(self) -> bytes:
        """The whole body, without a byte order mark."""
        pieces: list[bytes] = []
        size = 0
        async for piece in self:
            pieces.append(piece)
            size += len(piece)
            if size > self._longest:
                raise too_long(self._longest, self._connector.target)
        if size > LARGE:
            return await asyncio.to_thread(_joined, pieces)
        return _joined(pieces)

    async def finish(self) -> None:
        """Wait a moment for the proper end after ``[DONE]``, so that the connection can be kept."""
        connection = self._connection
        if connection is not None and not connection.ended:
            with contextlib.suppress(UpstreamError, TimeoutError):
                async with asyncio.timeout(_END_SECONDS):
                    async for _ in self:
                        pass
        await self.aclose()

    async def aclose(self) -> None:
        """Give the connection back, or close it when the answer has not ended."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.taker = None
            self._connector.give_back(connection)


def _joined(pieces: Sequence[bytes]) -> bytes:
    whole = pieces[0] if len(pieces) == 1 else b"".join(pieces)
    return whole.removeprefix(BOM)


async def _nothing() -> bytes:
    raise StopAsyncIteration
