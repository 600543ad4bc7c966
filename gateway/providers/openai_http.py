"""A target that speaks the OpenAI API over HTTP. With ``transport`` the only use of httpx here."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence

import httpx

import gateway
from gateway.core.clock import Clock
from gateway.core.errors import UpstreamError
from gateway.core.rates import Rates
from gateway.core.targets import UpstreamCall
from gateway.providers import transport as wire
from gateway.providers.base import Reply
from gateway.providers.failures import Scrubber, failure
from gateway.providers.limits import AttemptLimits
from gateway.providers.rates import rates_of

_FIRST_FAILURE = 300
_LONGEST_ERROR = 256 * 1024
_END_SECONDS = 0.2


class OpenAITarget:
    """Sends calls to ``base_url`` (ending in ``/v1`` as the vendor writes it; a query is kept).

    ``headers`` are the policy's own; of the client's headers none is ever sent. ``secrets`` are
    texts that must not show up in an error, besides the key and the address.
    """

    def __init__(
        self,
        name: str,
        base_url: str,
        clock: Clock,
        *,
        api_keys: Sequence[str] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        extra = dict(headers or {})
        self.scrub = Scrubber.of(base_url, *api_keys, *extra.values())
        # One key goes with every request; of several, each request carries its own.
        alone = api_keys[0] if len(api_keys) == 1 else None
        self._bearers = [f"Bearer {key}".encode() for key in api_keys] if not alone else []
        self._base = httpx.URL(base_url)
        self._clock = clock
        self._urls: dict[str, httpx.URL] = {}
        self._transport = wire.new_transport(
            {
                "Content-Type": "application/json",
                "Accept": "*/*",
                "Accept-Encoding": "identity",
                "User-Agent": f"headway/{gateway.__version__}",
                **({"Authorization": f"Bearer {alone}"} if alone else {}),
                **extra,
            }
        )

    async def send(self, call: UpstreamCall) -> Reply:
        """One attempt, as ``Target.send`` promises.

        A reused connection that closed before any byte of the answer is replaced once, silently.
        """
        limits = AttemptLimits(self.name, call.timeouts)
        try:
            answer = await self._head(call, limits)
        except BaseException:
            limits.close()
            raise
        reply = HttpReply(self.name, answer, limits, call, self._clock)
        if answer.status_code >= _FIRST_FAILURE:
            raise await self._failure(reply)
        return reply

    async def aclose(self) -> None:
        """Close every connection."""
        await self._transport.aclose()

    async def _head(self, call: UpstreamCall, limits: AttemptLimits) -> httpx.Response:
        request = self._request(call)
        try:
            return await self._exchange(request, call, limits)
        except wire.TRANSPORT_ERRORS as error:
            if not (wire.reused.get() and wire.closed_before_answer(error)):
                raise wire.before_head(error, self.name) from None
        fresh = wire.fresh_only.set(True)
        try:
            return await self._exchange(request, call, limits)
        except wire.TRANSPORT_ERRORS as error:
            raise wire.before_head(error, self.name) from None
        finally:
            wire.fresh_only.reset(fresh)

    async def _exchange(
        self, request: httpx.Request, call: UpstreamCall, limits: AttemptLimits
    ) -> httpx.Response:
        sent = self._transport.handle_async_request(request)
        return await limits.wait(sent, "first byte", call.timeouts.first_byte)

    def _request(self, call: UpstreamCall) -> httpx.Request:
        url = self._urls.get(call.path)
        if url is None:
            path = self._base.path.rstrip("/") + call.path
            url = self._urls.setdefault(call.path, self._base.copy_with(path=path))
        bearer = self._bearers[call.key] if self._bearers else None
        return wire.PreparedRequest(url, call.request_id, call.body, call.timeouts.connect, bearer)

    async def _failure(self, reply: "HttpReply") -> UpstreamError:
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
            self.name, reply.status, reply.headers, bytes(body), self.scrub, self._clock.now
        )
        error.rates = reply.rates
        return error


class HttpReply:
    """A successful answer, as ``Reply`` promises."""

    def __init__(
        self,
        target: str,
        answer: httpx.Response,
        limits: AttemptLimits,
        call: UpstreamCall,
        clock: Clock,
    ) -> None:
        self.status = answer.status_code
        self.headers: Mapping[str, str] = answer.headers
        self._target = target
        self._answer = answer
        self._limits = limits
        self._call = call
        self._clock = clock
        self.body: AsyncIterator[bytes] = self._pieces()

    @property
    def rates(self) -> Rates | None:
        """The limits that the answer tells of."""
        return rates_of(self._answer.headers.raw, self._clock.now)

    async def read(self) -> bytes:
        """The whole body."""
        return b"".join([piece async for piece in self.body])

    async def finish(self) -> None:
        """Wait a moment for the proper end after ``[DONE]``, so that the connection can be kept."""
        with contextlib.suppress(UpstreamError, TimeoutError):
            async with asyncio.timeout(_END_SECONDS):
                async for _ in self.body:
                    pass
        await self.aclose()

    async def aclose(self) -> None:
        """Give the connection back, or close it when the answer has not ended."""
        self._limits.close()
        with contextlib.suppress(*wire.TRANSPORT_ERRORS):
            await self._answer.aclose()

    async def _pieces(self) -> AsyncIterator[bytes]:
        stream = self._answer.stream
        assert isinstance(stream, httpx.AsyncByteStream)
        pieces = aiter(stream)
        phase, seconds = "first byte", self._call.timeouts.first_byte
        while True:
            try:
                piece = await self._limits.wait(anext(pieces), phase, seconds)
            except StopAsyncIteration:
                return
            except wire.TRANSPORT_ERRORS:
                raise wire.in_body(self._target) from None
            yield piece
            phase, seconds = "idle", self._call.timeouts.idle
