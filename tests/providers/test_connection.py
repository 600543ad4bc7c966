"""One connection against servers whose every byte is written here."""

import asyncio
import contextlib
import gc
import socket
import struct
import time
import weakref
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import uvloop

from gateway.core.errors import (
    OutcomeUnknown,
    StreamInterrupted,
    UpstreamError,
    UpstreamFailed,
    UpstreamTimeout,
)
from gateway.core.targets import Timeouts
from gateway.providers.connection import Connection
from tests.support.raw_server import raw_server

REQUEST = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}"


@contextlib.asynccontextmanager
async def connected(*answers: bytes, after: str = "stay") -> AsyncIterator[Connection]:
    """A connection to a server that gives ``answers`` in turn, then stays, closes or resets."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for data in answers:
            await reader.readexactly(len(REQUEST))
            writer.write(data)
        await asyncio.sleep(0.05)
        if after == "reset":
            line = writer.get_extra_info("socket")
            line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        elif after == "stay":
            await reader.read()

    async with raw_server(serve) as port, connection_to(port) as made:
        yield made


@contextlib.asynccontextmanager
async def connection_to(port: int) -> AsyncIterator[Connection]:
    """A connection to this machine."""
    loop = asyncio.get_running_loop()
    _, made = await loop.create_connection(lambda: Connection("t"), "127.0.0.1", port)
    try:
        yield made
    finally:
        made.abort()


async def exchange(connection: Connection) -> bytes:
    """One request and the whole body of its answer."""
    ends = asyncio.get_running_loop().time() + 5
    await connection.send(REQUEST, Timeouts(first_byte=1, idle=1), ends)
    pieces = []
    with contextlib.suppress(StopAsyncIteration):
        while True:
            pieces.append(await connection.piece())
    return b"".join(pieces)


async def broken(*answers: bytes, after: str = "stay") -> UpstreamError:
    """The error of one exchange."""
    async with connected(*answers, after=after) as connection:
        with pytest.raises(UpstreamError) as caught:
            await exchange(connection)
        assert not connection.kept
        return caught.value


def test_two_exchanges_on_the_loop_of_the_product() -> None:
    """A connection serves on after a length and after chunks with a trailer."""
    long = b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\nX-A: 1\r\n\r\nabc"
    chunks = (
        b"HTTP/1.1 201 OK\r\ntransfer-encoding: chunked\r\n\r\n"
        b"2\r\nde\r\n1\r\nf\r\n0\r\nt: 1\r\n\r\n"
    )

    async def both() -> None:
        async with connected(long, chunks) as connection:
            assert await exchange(connection) == b"abc"
            assert (connection.status, connection.headers[1]) == (200, (b"x-a", b"1"))
            assert connection.kept
            assert await exchange(connection) == b"def"
            assert (connection.status, len(connection.headers)) == (201, 1)
            assert connection.used
            assert connection.kept

    uvloop.run(both())


async def test_an_empty_body_has_ended() -> None:
    """An answer without content ends with its head, and the connection serves on."""
    async with connected(b"HTTP/1.1 204 No Content\r\n\r\n") as connection:
        assert await exchange(connection) == b""
        assert connection.kept


async def test_a_body_without_length_ends_with_the_connection() -> None:
    """Closing is the proper end of it; a reset is not."""
    head = b"HTTP/1.1 200 OK\r\n\r\n"
    async with connected(head + b"whole", after="close") as connection:
        assert await exchange(connection) == b"whole"
        assert not connection.kept
    assert isinstance(await broken(head, after="reset"), StreamInterrupted)


async def test_what_came_is_read_before_the_break_shows() -> None:
    """The bytes in front of a cut are not lost."""
    cut = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc"
    async with connected(cut, after="close") as connection:
        await connection.send(REQUEST, Timeouts(), asyncio.get_running_loop().time() + 5)
        await asyncio.sleep(0.05)
        assert await connection.piece() == b"abc"
        with pytest.raises(StreamInterrupted) as caught:
            await connection.piece()
        assert caught.value.cut


async def test_no_http() -> None:
    """Nonsense, another protocol and a head without end are the target's failure."""
    for answer in (
        b"NOT HTTP\r\n\r\n",
        b"HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nx: " + b"a" * 80_000,
    ):
        assert type(await broken(answer)) is UpstreamFailed
    malformed = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"
    assert isinstance(await broken(malformed), StreamInterrupted)


async def test_no_answer() -> None:
    """A close without a whole head leaves the outcome open; ``silent`` tells if a byte came."""
    async with connected(b"", after="close") as connection:
        with pytest.raises(OutcomeUnknown):
            await exchange(connection)
        assert connection.silent
    async with connected(b"HTTP/1.1 20", after="close") as connection:
        with pytest.raises(OutcomeUnknown):
            await exchange(connection)
        assert not connection.silent


async def test_what_comes_unasked_ends_the_connection() -> None:
    """A second answer, or one to no request, must not reach the next caller."""
    ok = b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n"
    async with connected(ok + b"a" + ok + b"b") as connection:
        assert await exchange(connection) == b"a"
        assert not connection.kept
        with pytest.raises(OutcomeUnknown):
            await exchange(connection)


async def test_a_half_sent_request_is_the_last() -> None:
    """An answer that came before the request was read leaves its rest on the connection."""

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 413 No\r\ncontent-length: 0\r\n\r\n")
        await asyncio.sleep(5)

    async with raw_server(serve) as port, connection_to(port) as connection:
        ends = asyncio.get_running_loop().time() + 5
        await connection.send(REQUEST + b"x" * 2**25, Timeouts(), ends)
        with pytest.raises(StopAsyncIteration):
            await connection.piece()
        assert not connection.kept


async def test_many_interim_answers_do_not_move_the_limit() -> None:
    """The first byte's limit counts from the request."""

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            writer.write(b"HTTP/1.1 103 Early Hints\r\n\r\n")
            await writer.drain()
            await asyncio.sleep(0.02)

    async with raw_server(serve) as port, connection_to(port) as connection:
        start = time.monotonic()
        ends = asyncio.get_running_loop().time() + 5
        with pytest.raises(UpstreamError, match="first byte"):
            await connection.send(REQUEST, Timeouts(first_byte=0.1), ends)
        assert time.monotonic() - start < 3


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
def test_it_is_told_when_the_request_has_left(run: Callable[[Any], Any]) -> None:
    """At once where the system takes all of it, else with its last byte; not for a part of it."""

    async def told(request: bytes, *, read: bool) -> bool:
        async def serve(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
            if read:
                await reader.readexactly(len(request))
            await asyncio.sleep(8)

        sent: list[bool] = []
        async with raw_server(serve) as port, connection_to(port) as connection:
            ends = asyncio.get_running_loop().time() + 8
            limits = Timeouts(first_byte=3.0 if read else 0.3)
            with pytest.raises(UpstreamTimeout):
                await connection.send(request, limits, ends, lambda: sent.append(True))
        assert len(sent) <= 1
        return bool(sent)

    large = REQUEST + b"x" * 2**25
    assert run(told(REQUEST, read=False))
    assert run(told(large, read=True))
    assert not run(told(large, read=False))


async def test_a_closed_connection_is_gone_at_once() -> None:
    """It and its parser have each other only while it stands."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    gc.disable()
    try:
        async with raw_server(serve) as port:
            async with connection_to(port) as made:
                held = weakref.ref(made)
            made.abort()
            del made
            await asyncio.sleep(0.05)
            assert held() is None
    finally:
        gc.enable()


async def test_what_is_taken_at_once_wakes_nobody() -> None:
    """A piece goes to the taker alone; the first that it leaves, and all behind, to who waits."""
    head = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n"
    offered: list[bytes] = []
    seen = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(len(REQUEST))
        for data in (head, b"a", b"b", b"c", b"d"):
            writer.write(data)
            await seen.wait()
            seen.clear()

    def taker(data: bytes) -> bool:
        offered.append(data)
        seen.set()
        return data != b"c"

    async with raw_server(serve) as port, connection_to(port) as connection:
        ends = asyncio.get_running_loop().time() + 5
        await connection.send(REQUEST, Timeouts(first_byte=1, idle=1), ends)
        connection.taker = taker
        seen.set()
        assert await connection.piece() == b"c"
        assert offered == [b"a", b"b", b"c"]
        assert await connection.piece() == b"d"  # the last: whoever waits must see the end
        assert offered == [b"a", b"b", b"c"]
