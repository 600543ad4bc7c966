"""The HTTP target against a real server that misbehaves."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from gateway.core.clock import SystemClock
from gateway.core.errors import (
    OutcomeUnknown,
    StreamInterrupted,
    UpstreamError,
    UpstreamFailed,
    UpstreamRefused,
    UpstreamThrottled,
    UpstreamTimeout,
)
from gateway.core.targets import Timeouts, UpstreamCall
from gateway.providers.openai_http import Dialect, OpenAITarget
from tests.support.exchange import Exchange
from tests.support.scripts import Sse, answer, chat_chunk, error, hang_up, never
from tests.support.upstream import ScriptedUpstream

BODY = b'{"model":"m","messages":[]}'


def call(timeouts: Timeouts | None = None, body: bytes = BODY) -> UpstreamCall:
    """A chat call."""
    return UpstreamCall("/chat/completions", body, "req_1", False, timeouts or Timeouts())


@pytest.fixture
async def target(upstream: ScriptedUpstream) -> AsyncIterator[OpenAITarget]:
    """A target at UP."""
    made = OpenAITarget("t", upstream.url, SystemClock(), api_keys=["sk-up"], headers={"x-a": "b"})
    yield made
    await made.aclose()


async def fails(target: OpenAITarget, timeouts: Timeouts | None = None) -> UpstreamError:
    """The error of one whole call."""

    async def whole() -> None:
        reply = await target.send(call(timeouts))
        try:
            await reply.read()
        finally:
            await reply.aclose()

    with pytest.raises(UpstreamError) as caught:
        await whole()
    return caught.value


async def test_prepared_request(target: OpenAITarget, upstream: ScriptedUpstream) -> None:
    """Path, key, own headers, length and identity encoding are what the target needs."""
    reply = await target.send(replace(call(), head=b"x-rank: 1\r\n"))
    await reply.read()
    await reply.aclose()
    seen = upstream.calls()[0]
    assert seen.path == "/v1/chat/completions"
    assert seen.headers["x-rank"] == "1"
    assert seen.headers["authorization"] == "Bearer sk-up"
    assert seen.headers["x-a"] == "b"
    assert seen.headers["x-request-id"] == "req_1"
    assert seen.headers["accept-encoding"] == "identity"
    assert seen.headers["host"] == f"127.0.0.1:{upstream.port}"
    assert seen.body == BODY


async def test_azures_dated_api(upstream: ScriptedUpstream) -> None:
    """Deployment in the path, version in the query, the key in a header of its own."""
    target = OpenAITarget(
        "t",
        f"http://127.0.0.1:{upstream.port}/openai?a=b",
        SystemClock(),
        api_keys=["k1", "k2"],
        dialect=Dialect("api-key", "2024-10-21"),
    )
    try:
        for key in (0, 1):
            upstream.enqueue(answer({"choices": []}))
            reply = await target.send(replace(call(), key=key, model="my dep"))
            await reply.read()
            await reply.aclose()
    finally:
        await target.aclose()
    first, second = upstream.calls()
    path = "/openai/deployments/my%20dep/chat/completions?a=b&api-version=2024-10-21"
    assert first.path == second.path == path
    assert [seen.headers["api-key"] for seen in (first, second)] == ["k1", "k2"]
    assert "authorization" not in first.headers


async def test_limits_have_their_own_errors(
    target: OpenAITarget, upstream: ScriptedUpstream
) -> None:
    """First byte, idle gap and total each end the call at their time, by name."""
    upstream.on("m", never(), times=1)
    assert "first byte" in str(await fails(target, Timeouts(first_byte=0.05)))
    upstream.enqueue(Sse([chat_chunk("a")], end="hang"))
    assert "idle" in str(await fails(target, Timeouts(idle=0.05)))
    upstream.enqueue(Sse([chat_chunk("a")] * 50, pause=0.02))
    assert "total" in str(await fails(target, Timeouts(total=0.1)))
    await upstream.until(lambda: not upstream.open_connections)


async def test_connect_limit() -> None:
    """A host that does not answer the handshake ends at the connect limit."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        port = listener.getsockname()[1]
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", port))
        target = OpenAITarget("t", f"http://127.0.0.1:{port}/v1", SystemClock())
        start = time.monotonic()
        error_ = await fails(target, Timeouts(connect=0.2))
        assert isinstance(error_, UpstreamTimeout)
        assert error_.code == "connect_timeout"
        assert time.monotonic() - start < 3
        await target.aclose()
        for filler in fillers:
            filler.close()


async def test_refused(target: OpenAITarget, upstream: ScriptedUpstream) -> None:
    """Nobody listens: nothing was processed, and the text holds no address."""
    upstream.refuse()
    error_ = await fails(target)
    assert isinstance(error_, UpstreamRefused)
    assert "127.0.0.1" not in str(error_)


async def test_reused_connection_closed_is_replaced_once(
    target: OpenAITarget, upstream: ScriptedUpstream
) -> None:
    """A kept connection that closes before any byte costs nothing; a fresh one is an outcome."""
    upstream.enqueue(answer({"ok": 1}), hang_up(), answer({"ok": 2}), hang_up(), hang_up())
    for _ in range(2):
        reply = await target.send(call())
        await reply.read()
        await reply.aclose()
    assert [seen.reused for seen in upstream.calls()] == [False, True, False]
    assert isinstance(await fails(target), OutcomeUnknown)
    assert len(upstream.calls()) == 5


async def test_reused_connection_closed_late_is_an_outcome(
    target: OpenAITarget, upstream: ScriptedUpstream
) -> None:
    """The target had the call for more than half a second: it is never sent again by itself."""
    upstream.enqueue(answer({"ok": 1}), hang_up(0.6))
    reply = await target.send(call())
    await reply.read()
    await reply.aclose()
    assert isinstance(await fails(target), OutcomeUnknown)
    assert [seen.reused for seen in upstream.calls()] == [False, True]


@pytest.mark.parametrize("reset", [True, False])
async def test_fresh_connection_closed_is_never_repeated(
    target: OpenAITarget, upstream: ScriptedUpstream, *, reset: bool
) -> None:
    """Nobody knows what became of it, so it is not sent again."""
    upstream.on("m", hang_up(reset=reset))
    assert isinstance(await fails(target), OutcomeUnknown)
    assert len(upstream.calls()) == 1


async def test_partial_head_is_an_outcome(target: OpenAITarget, upstream: ScriptedUpstream) -> None:
    """A reused connection that closed in mid head had begun its answer: not sent again."""

    async def half(exchange: Exchange) -> None:
        exchange.raw(b"HTTP/1.1 200 OK\r\ncontent-le")
        await asyncio.sleep(0.01)
        exchange.close()

    upstream.enqueue(answer({"ok": 1}), half)
    reply = await target.send(call())
    await reply.read()
    await reply.aclose()
    assert isinstance(await fails(target), OutcomeUnknown | UpstreamFailed)
    assert len(upstream.calls()) == 2


async def test_malformed_head(target: OpenAITarget, upstream: ScriptedUpstream) -> None:
    """What is not HTTP is the target's failure."""

    async def nonsense(exchange: Exchange) -> None:
        exchange.raw(b"NOT HTTP AT ALL\r\n\r\n")
        await asyncio.sleep(0.05)
        exchange.close()

    upstream.enqueue(nonsense)
    assert isinstance(await fails(target), UpstreamFailed | OutcomeUnknown)


@pytest.mark.parametrize("end", ["close", "reset"])
async def test_truncated_bodies(target: OpenAITarget, upstream: ScriptedUpstream, end: str) -> None:
    """A body that ends before its framing says so is never a short success."""

    async def short(exchange: Exchange) -> None:
        exchange.head(200, {"content-type": "application/json"}, length=100)
        exchange.chunk(b'{"half":')
        await asyncio.sleep(0.02)
        exchange.close() if end == "close" else exchange.reset()

    upstream.enqueue(short, Sse([chat_chunk("a")], end="close"))
    assert isinstance(await fails(target), StreamInterrupted)
    assert isinstance(await fails(target), StreamInterrupted)


async def test_errors_are_read_and_the_connection_kept(
    target: OpenAITarget, upstream: ScriptedUpstream
) -> None:
    """A refusal comes with its wait and its body, over a connection that serves on."""
    upstream.enqueue(error(429, "slow", headers={"retry-after": "2"}))
    error_ = await fails(target)
    assert isinstance(error_, UpstreamThrottled)
    assert (error_.retry_after, error_.status) == (2.0, 429)
    assert b"slow" in error_.body
    reply = await target.send(call())
    await reply.read()
    await reply.aclose()
    assert upstream.connections == 1


async def test_each_call_carries_its_own_key(upstream: ScriptedUpstream) -> None:
    """Of several keys the one that the call names; none of them shows in an error."""
    target = OpenAITarget("t", upstream.url, SystemClock(), api_keys=["sk-one", "sk-two"])
    for key in (1, 0):
        reply = await target.send(replace(call(), key=key))
        await reply.read()
        await reply.aclose()
    sent = [seen.headers["authorization"] for seen in upstream.calls()]
    assert sent == ["Bearer sk-two", "Bearer sk-one"]
    assert target.scrub.clean("sk-two and sk-one") == "*** and ***"
    await target.aclose()
