"""The answer of a streamed call: held head, content commit, keep-alive, one error event.

Until content has come from a target, another one may take over and nothing of the first is seen.
After it the stream is that target's, and a failure is one error event without ``[DONE]``.
"""

import asyncio
from collections.abc import Callable
from functools import partial

from starlette.types import Send

from gateway.api.calls import Call, Held
from gateway.api.relay import HEARTBEAT, Relay, ShortWay, Shown, end, first_shown, take
from gateway.api.unstreamed import events_of_whole
from gateway.core.errors import (
    Draining,
    HeadwayError,
    StreamInterrupted,
    UpstreamError,
    UpstreamTimeout,
)
from gateway.core.values import value
from gateway.metering.record import CallStatus
from gateway.metering.unreported import may_have_worked
from gateway.routing.fallback import attempt_all
from gateway.routing.route import Route


async def answer_stream(call: Call, send: Send) -> None:
    """Relay a stream to the client. Errors before the head has gone out are raised."""
    client = ClientStream(call, send)
    try:
        try:
            begun = await attempt_all(call.plan, partial(_begin, call), call.parts.clock)
        except HeadwayError as error:
            if not client.started:
                raise
            await _fail(call, client, error)
            return
        await _relay(call, client, begun)
    except asyncio.CancelledError:
        if call.left or not client.started:
            raise
        await _cut_off(call, client)
    finally:
        client.close()


class ClientStream:
    """The client's side. The head goes out with the first bytes, or after ``head_hold``.

    From then on an idle stream gets a comment every ``keep_alive`` seconds.
    """

    def __init__(self, call: Call, send: Send) -> None:
        self.started = False
        self._call = call
        self._send = send
        self._send_now: Callable[[bytes], bool] | None = getattr(send, "send_now", None)
        self._loop = asyncio.get_running_loop()
        self._times = call.parts.times
        self._written = self._loop.time()
        self._writing = False
        self._beat: asyncio.Task[None] | None = None
        self._timer = self._loop.call_later(self._times.head_hold, self._tick)

    async def write(self, data: bytes, *, more: bool = True) -> None:
        """Send complete events; waits while the client does not read. After the last no sign."""
        if self._beat is not None:
            await self._beat
            self._beat = None
        if not more:
            self._timer.cancel()
        self._written = self._loop.time()
        self._writing = True
        if not self.started:
            await self._start()
        await self._send({"type": "http.response.body", "body": data, "more_body": more})
        self._writing = False

    def write_now(self, data: bytes) -> bool:
        """Send complete events; false, and nothing is sent, when that would be a wait."""
        if self._beat is not None or self._send_now is None or not self._send_now(data):
            return False
        self._written = self._loop.time()
        return True

    def close(self) -> None:
        """No more signs of life."""
        self._timer.cancel()
        if self._beat is not None:
            self._beat.cancel()
            self._beat = None

    async def _start(self) -> None:
        self.started = True
        headers = [
            (b"content-type", b"text/event-stream; charset=utf-8"),
            (b"cache-control", b"no-cache"),
            (b"x-accel-buffering", b"no"),
            *self._call.headers(),
        ]
        await self._send({"type": "http.response.start", "status": 200, "headers": headers})

    async def _show_life(self) -> None:
        self._written = self._loop.time()
        if not self.started:
            await self._start()
        await self._send({"type": "http.response.body", "body": HEARTBEAT, "more_body": True})

    def _tick(self) -> None:
        idle = self._loop.time() - self._written >= self._times.keep_alive
        if (idle or not self.started) and not self._writing:
            self._beat = self._loop.create_task(self._show_life())
        self._timer = self._loop.call_later(self._times.keep_alive, self._tick)


@value
class _Begun:
    """A stream that this call is bound to, and what was read so far."""

    held: Held
    relay: Relay
    shown: Shown


async def _begin(call: Call, route: Route, last: bool) -> _Begun:
    """One attempt up to its first content; on the last route up to its first event."""
    held = await call.send(route)
    relay = call.relay(route)
    now = call.parts.clock.monotonic
    try:
        whole = partial(events_of_whole, call, route, held.reply)
        shown = await first_shown(relay, held.reply, now, whole, content=not last)
    except BaseException as error:
        call.failed(route, error)
        _note(call, relay, error)
        await held.aclose()
        raise
    call.succeeded(route, held.reply.status)
    return _Begun(held, relay, shown)


async def _relay(call: Call, client: ClientStream, begun: _Begun) -> None:
    relay, held, now = begun.relay, begun.held, call.parts.clock.monotonic
    try:
        last = begun.shown.data if relay.done else await _follow(client, begun, now)
        _note(call, relay)
        call.settle(CallStatus.OK, 200)
        call.answered()
        await client.write(last, more=False)
        await held.finish()
    except UpstreamError as error:
        _note(call, relay, error)
        await held.aclose()
        await _break_off(call, client, _interrupted(error), relay.unshown)
    except BaseException:
        _note(call, relay)
        await held.aclose()
        raise


async def _follow(client: ClientStream, begun: _Begun, now: Callable[[], float]) -> bytes:
    """Pass the stream on as it comes; returns its last bytes, unsent."""
    if begun.shown.data:
        await client.write(begun.shown.data)
    if begun.shown.failure is not None:
        raise begun.shown.failure
    if (short_way := begun.relay.short_way) is not None:
        begun.held.reply.offer_to(partial(_pass_on, client, short_way, now))
    async for piece in begun.held.reply.body:
        data = await take(begun.relay, piece, now)
        if begun.relay.done:
            return data
        if data:
            await client.write(data)
    return await end(begun.relay, now)


async def _break_off(call: Call, client: ClientStream, error: UpstreamError, before: bytes) -> None:
    call.broken(error)
    await _fail(call, client, error, before)


def _pass_on(client: ClientStream, way: ShortWay, now: Callable[[], float], piece: bytes) -> bool:
    """Pass on what needs neither a look nor a wait: then the call's task is not even woken."""
    texts = way.plain(piece)
    if not texts or not client.write_now(piece):
        return False
    way.passed(texts, now())
    return True


async def _fail(call: Call, client: ClientStream, error: HeadwayError, before: bytes = b"") -> None:
    call.settle(CallStatus.FAILED, 200)
    call.answered()
    await client.write(before + call.error_event(error), more=False)


async def _cut_off(call: Call, client: ClientStream) -> None:
    """End the stream because the process ends. Each write is whole events, so this one is too."""
    call.settle(CallStatus.INTERRUPTED, 200)
    call.answered()
    client.close()
    await client.write(call.error_event(Draining("The gateway is shutting down.")), more=False)


def _note(call: Call, relay: Relay, error: BaseException | None = None) -> None:
    """What was used so far. A failure told before any content is as a refusal."""
    if relay.committed or error is None or may_have_worked(error):
        call.usage, call.timing = relay.usage, relay.timing


def _interrupted(error: UpstreamError) -> UpstreamError:
    """A stall is an interruption to whoever reads the stream."""
    if isinstance(error, UpstreamTimeout):
        return StreamInterrupted(
            "The target stopped in the middle of its answer.", target=error.target
        )
    return error
