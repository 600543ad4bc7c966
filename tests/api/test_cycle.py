"""How answers are written: few writes, right framing, no header that is two."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from uvicorn.config import Config
from uvicorn.server import ServerState

from gateway.api.protocol import limited

App = Callable[[Any, Any, Any], Any]
REQUEST = b"GET /x HTTP/1.1\r\nhost: a\r\n\r\n"
OK = {"type": "http.response.start", "status": 200}


def sends(*messages: dict[str, Any]) -> App:
    """An application that answers with these."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        del scope, receive
        for message in messages:
            await send(message)

    return app


def body(data: bytes, *, more: bool = False) -> dict[str, Any]:
    """A message with a piece of the body."""
    return {"type": "http.response.body", "body": data, "more_body": more}


@contextlib.asynccontextmanager
async def talking(app: App) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection to a server of ``app``."""
    config = Config(app, loop="none", lifespan="off", log_config=None, timeout_keep_alive=1)
    config.load()
    state = ServerState()
    make = limited(0.3, 5.0)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: make(config, state, {}), "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname()[:2])
    try:
        yield reader, writer
    finally:
        writer.close()
        server.close()
        await asyncio.gather(*state.tasks, return_exceptions=True)
        await asyncio.sleep(0.01)


async def answer(app: App, request: bytes = REQUEST) -> bytes:
    """All that comes back for a request after which the connection closes."""
    async with talking(app) as (reader, writer):
        writer.write(request.replace(b"host: a", b"host: a\r\nconnection: close"))
        return await asyncio.wait_for(reader.read(), 5)


async def test_a_known_length_goes_out_whole() -> None:
    """Head and body are one piece; HEAD gets the head alone."""
    app = sends({**OK, "headers": [(b"content-length", b"2")]}, body(b"ab"))
    whole = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n"
    assert await answer(app) == whole + b"ab"
    assert await answer(app, REQUEST.replace(b"GET", b"HEAD")) == whole
    async with talking(app) as (reader, writer):
        writer.write(REQUEST)
        assert (await reader.read(1000)).endswith(b"\r\n\r\nab")


async def test_an_open_end_is_chunked_and_its_head_goes_at_once() -> None:
    """The caller sees the head before the first piece is there."""
    go = asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        del scope, receive
        await send({**OK, "headers": []})
        await go.wait()
        await send(body(b"abc", more=True))
        await send(body(b""))

    async with talking(app) as (reader, writer):
        writer.write(REQUEST)
        head = await reader.readuntil(b"\r\n\r\n")
        assert head == b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
        go.set()
        assert await reader.readexactly(13) == b"3\r\nabc\r\n0\r\n\r\n"


@pytest.mark.parametrize("version", [b"1.0", b"0.9"])
async def test_an_old_caller_gets_no_chunks(version: bytes) -> None:
    """They came with 1.1: the end of the connection is the end of the body."""
    app = sends({**OK, "headers": []}, body(b"abc", more=True), body(b"", more=True), body(b"de"))
    for request in (REQUEST, REQUEST.replace(b"host: a", b"connection: keep-alive")):
        async with talking(app) as (reader, writer):
            writer.write(request.replace(b"1.1", version))
            got = await asyncio.wait_for(reader.read(), 5)
            assert got == b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nabcde"
    head = await answer(app, REQUEST.replace(b"GET", b"HEAD").replace(b"1.1", version))
    assert head.endswith(b"connection: close\r\n\r\n")


async def test_an_old_caller_is_not_asked_to_go_on() -> None:
    """100 came with 1.1, too."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        del scope
        await receive()
        await send({**OK, "headers": [(b"content-length", b"0")]})
        await send(body(b""))

    request = b"POST /x HTTP/1.1\r\nexpect: 100-continue\r\nhost: a\r\ncontent-length: 1\r\n\r\nx"
    assert (await answer(app, request)).startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200")
    assert (await answer(app, request.replace(b"1.1", b"1.0"))).startswith(b"HTTP/1.1 200")


async def test_no_body_no_framing() -> None:
    """204 has neither a length nor chunks."""
    app = sends({**OK, "status": 204, "headers": []}, body(b""))
    assert await answer(app) == b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n"


async def test_the_answer_may_close() -> None:
    """An answer that says so ends the connection."""
    headers = [(b"content-length", b"0"), (b"connection", b"Close")]
    async with talking(sends({**OK, "headers": headers}, body(b""))) as (reader, writer):
        writer.write(REQUEST)
        assert (await asyncio.wait_for(reader.read(), 5)).endswith(b"connection: Close\r\n\r\n")


@pytest.mark.parametrize(
    "messages",
    [
        ({**OK, "headers": [(b"x", b"a\r\nb: c")]}, body(b"")),
        ({**OK, "headers": [(b"x", b"a\x00")]}, body(b"")),
        ({**OK, "headers": [(b"content-length", b"2")]}, body(b"a")),
        ({**OK, "headers": [(b"content-length", b"2")]}, body(b"abc")),
        ({**OK, "headers": [(b"content-length", b"2")]}, OK),
    ],
)
async def test_a_wrong_answer_is_none(messages: tuple[dict[str, Any], ...]) -> None:
    """Split headers and wrong lengths are bugs: the connection closes, nothing comes out."""
    assert await answer(sends(*messages)) == b""


async def test_an_idle_connection_ends() -> None:
    """After the keep-alive time without a request, and not before."""
    app = sends({**OK, "headers": [(b"content-length", b"0")]}, body(b""))
    async with talking(app) as (reader, writer):
        for _ in range(2):
            writer.write(REQUEST)
            await reader.readuntil(b"\r\n\r\n")
            await asyncio.sleep(0.5)
        assert await asyncio.wait_for(reader.read(), 3) == b""


async def test_a_part_of_a_stream_is_sent_without_a_wait() -> None:
    """Between head and end, and never of an answer of known length."""
    could: list[bool] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        now = send.__self__.send_now
        could.append(now(b"a"))
        await send({**OK, "headers": []})
        could.append(now(b"ab"))
        await send(body(b"c"))
        could.append(now(b"d"))

    assert (await answer(app)).endswith(b"\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n")
    assert could == [False, True, False]

    async def known(scope: Any, receive: Any, send: Any) -> None:
        await send({**OK, "headers": [(b"content-length", b"1")]})
        could.append(send.__self__.send_now(b"x"))
        await send(body(b"y"))

    assert (await answer(known)).endswith(b"\r\n\r\ny")
    assert could[-1] is False
