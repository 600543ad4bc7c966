"""The server ends after its calls, not before."""

import asyncio

import httpx
import pytest
from starlette.types import Receive, Scope, Send

from gateway.bootstrap.listen import listen, url_of
from gateway.bootstrap.server import GatewayServer
from gateway.core.clock import SystemClock


async def test_a_running_call_is_waited_for() -> None:
    """``finish`` lets it end; then ``serve`` returns."""
    reached, go_on = asyncio.Event(), asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        reached.set()
        await go_on.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"done"})

    listener = listen("127.0.0.1", 0)
    url = url_of(listener)
    server = GatewayServer(app, log_level="warning")
    serving = asyncio.create_task(server.serve([listener]))
    async with httpx.AsyncClient() as client:
        call = asyncio.create_task(client.get(url))
        await reached.wait()
        finishing = asyncio.create_task(server.finish(SystemClock(), 5.0))
        await asyncio.sleep(0.2)
        assert not serving.done()
        go_on.set()
        assert (await call).text == "done"
        await finishing
    await asyncio.wait_for(serving, 5)


async def test_calls_that_outlast_the_grace_time_are_ended() -> None:
    """They are cancelled and may still answer; one that does not hold on is cut."""
    reached = asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        reached.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await send({"type": "http.response.body", "body": b"cut short"})

    listener = listen("127.0.0.1", 0)
    url = url_of(listener)
    server = GatewayServer(app, log_level="warning")
    serving = asyncio.create_task(server.serve([listener]))
    async with httpx.AsyncClient() as client:
        call = asyncio.create_task(client.get(url))
        await reached.wait()
        await server.finish(SystemClock(), 0.1)
        assert (await call).text == "cut short"
    await asyncio.wait_for(serving, 5)


@pytest.mark.parametrize(
    ("trusted", "seen"),
    [("", "127.0.0.1"), ("10.0.0.0/8", "127.0.0.1"), ("127.0.0.0/8", "203.0.113.9")],
)
async def test_forwarded_headers_count_from_listed_proxies_alone(trusted: str, seen: str) -> None:
    """Anybody else's are what they are: a claim. The nearest address that is no proxy counts."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": scope["client"][0].encode()})

    listener = listen("127.0.0.1", 0)
    server = GatewayServer(app, log_level="warning", trusted_proxies=trusted)
    serving = asyncio.create_task(server.serve([listener]))
    headers = {"x-forwarded-for": "198.51.100.7, 203.0.113.9"}
    async with httpx.AsyncClient(headers=headers) as client:
        assert (await client.get(url_of(listener))).text == seen
    await server.finish(SystemClock(), 1.0)
    await asyncio.wait_for(serving, 5)
