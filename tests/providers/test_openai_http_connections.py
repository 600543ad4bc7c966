"""What becomes of the HTTP target's connections."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from gateway.core.clock import SystemClock
from gateway.core.targets import UpstreamCall
from gateway.providers.openai_http import OpenAITarget
from tests.support.exchange import Exchange
from tests.support.scripts import Script, Sse, after, chat_chunk, never
from tests.support.upstream import ScriptedUpstream


def call() -> UpstreamCall:
    """A chat call."""
    return UpstreamCall("/chat/completions", b'{"model":"m","messages":[]}', "req_1")


def together(upstream: ScriptedUpstream, calls: int) -> list[Script]:
    """Scripts for so many calls: none is answered before all are there."""
    everyone = asyncio.Event()

    async def answer(exchange: Exchange) -> None:
        if upstream.running == calls:
            everyone.set()
        await everyone.wait()
        exchange.full(200, b"{}")

    return [answer] * calls


@pytest.fixture
async def target(upstream: ScriptedUpstream) -> AsyncIterator[OpenAITarget]:
    """A target at UP."""
    made = OpenAITarget("t", upstream.url, SystemClock())
    yield made
    await made.aclose()


async def test_connections_are_kept_last_used_first(
    target: OpenAITarget, upstream: ScriptedUpstream
) -> None:
    """Calls in turn use one connection; after a burst the newest idle one is taken."""

    async def one() -> None:
        reply = await target.send(call())
        await reply.read()
        await reply.aclose()

    for _ in range(3):
        await one()
    assert upstream.connections == 1
    upstream.enqueue(*together(upstream, 4))
    async with asyncio.timeout(30):
        await asyncio.gather(*(one() for _ in range(4)))
    assert upstream.connections == 4
    await one()
    newest = upstream.calls()[-1].connection
    await one()
    assert upstream.calls()[-1].connection == newest


async def test_no_hidden_cap(target: OpenAITarget, upstream: ScriptedUpstream) -> None:
    """200 calls at once are 200 connections: the first is answered when the last one is there."""
    upstream.enqueue(*together(upstream, 200))

    async def one() -> None:
        reply = await target.send(call())
        await reply.read()
        await reply.aclose()

    async with asyncio.timeout(60):
        await asyncio.gather(*(one() for _ in range(200)))
    assert upstream.peak == upstream.connections == 200


async def test_connection_close_and_interim_answers(
    target: OpenAITarget, upstream: ScriptedUpstream
) -> None:
    """A 103 before the answer is skipped; a connection announced to close is not kept."""

    async def interim(exchange: Exchange) -> None:
        exchange.raw(b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n")
        exchange.full(200, b"{}", {"connection": "close"})
        exchange.close()

    upstream.enqueue(interim)
    for _ in range(2):
        reply = await target.send(call())
        assert reply.status == 200
        await reply.read()
        await reply.aclose()
    assert upstream.connections == 2


async def test_a_stream_is_not_buffered(target: OpenAITarget, upstream: ScriptedUpstream) -> None:
    """The first event is here though nothing comes after it."""
    upstream.enqueue(Sse([chat_chunk("a")], end="hang"))
    reply = await target.send(call())
    async with asyncio.timeout(10):
        assert b'"a"' in await anext(reply.body)
    await reply.aclose()
    await upstream.until(lambda: upstream.requests[0].peer_closed_at)


async def test_finish_keeps_the_connection(
    target: OpenAITarget, upstream: ScriptedUpstream
) -> None:
    """After [DONE] the end is awaited a moment, so the connection is used again."""
    for _ in range(2):
        upstream.enqueue(Sse([chat_chunk("a")]))
        reply = await target.send(call())
        async for piece in reply.body:
            if b"[DONE]" in piece:
                break
        await reply.finish()
    assert upstream.connections == 1


@pytest.mark.parametrize("phase", ["head", "body"])
async def test_cancel_closes_at_once(
    target: OpenAITarget, upstream: ScriptedUpstream, phase: str
) -> None:
    """Cancelling before the head or in the body closes the connection."""
    upstream.enqueue(never() if phase == "head" else after(0, Sse([chat_chunk("a")], end="hang")))

    async def whole() -> None:
        reply = await target.send(call())
        try:
            await reply.read()
        finally:
            await reply.aclose()

    task = asyncio.create_task(whole())
    await upstream.until(upstream.calls)
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await upstream.until(lambda: upstream.requests[0].peer_closed_at)


async def test_back_pressure(target: OpenAITarget, upstream: ScriptedUpstream) -> None:
    """A reader that stops reading stops the target: memory stays flat."""
    written = 0

    async def flood(exchange: Exchange) -> None:
        nonlocal written
        exchange.head(200)
        while written < 200 * 2**20:
            if exchange._transport.get_write_buffer_size() > 2**20:
                await asyncio.sleep(0.01)
                continue
            exchange.chunk(b"x" * 2**18)
            written += 2**18

    upstream.enqueue(flood)
    reply = await target.send(call())
    await anext(reply.body)
    await asyncio.sleep(0.3)
    assert written < 50 * 2**20
    await reply.aclose()
