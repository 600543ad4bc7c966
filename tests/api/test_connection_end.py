"""Who is refused hears of it, and holds its connection for a time alone."""

import asyncio
import contextlib
import socket
import time
from collections.abc import Iterator

import pytest

from tests.support.gate import NEXT, SECONDS, SOME, Gate, closed_gate, exchange, on_uvloop, statuses

DENY = b"POST /deny HTTP/1.1\r\nhost: x\r\n"
CLOSE = b"connection: close\r\n"


@pytest.fixture
def gate() -> Iterator[Gate]:
    """What is talked to."""
    with closed_gate() as made:
        yield made


@pytest.mark.parametrize("size", [10_000, 1_000_000, 20_000_000])
@on_uvloop
async def test_a_refusal_reaches_who_still_sends(gate: Gate, size: int) -> None:
    """The caller that closes sends all of its body before it reads, and reads the refusal."""

    def ask() -> bytes:
        with socket.create_connection(("127.0.0.1", gate.port), timeout=5) as caller:
            caller.sendall(DENY + CLOSE + b"content-length: %d\r\n\r\n" % size)
            time.sleep(0.05)
            for _ in range(size // 10_000):
                caller.sendall(b"x" * 10_000)
            return b"".join(iter(lambda: caller.recv(2**16), b""))

    for _ in range(5):
        assert (await asyncio.to_thread(ask)).endswith(b"\r\n\r\ndenied")


@on_uvloop
async def test_an_answer_that_ends_a_connection_reaches_who_still_sends(gate: Gate) -> None:
    """Requests behind it are not served, and do not take it with them."""

    def ask() -> bytes:
        with socket.create_connection(("127.0.0.1", gate.port), timeout=5) as caller:
            caller.sendall(b"GET /last HTTP/1.1\r\n\r\n" + NEXT)
            time.sleep(0.05)
            for _ in range(200):
                caller.sendall(NEXT * 100)
            return b"".join(iter(lambda: caller.recv(2**16), b""))

    for _ in range(5):
        assert (await asyncio.to_thread(ask)).endswith(b"\r\n\r\n/last")


@pytest.mark.parametrize("head", [b"GET / HTTP/1.1\r\nx: ", b"GET /", b"\x16\x03\x01"])
@on_uvloop
async def test_a_refused_head_is_told_to_who_still_sends(gate: Gate, head: bytes) -> None:
    """Whatever is wrong with it."""

    def ask() -> bytes:
        with socket.create_connection(("127.0.0.1", gate.port), timeout=5) as caller:
            caller.sendall(head)
            for _ in range(300):
                caller.sendall(b"x" * 10_000)
            return b"".join(iter(lambda: caller.recv(2**16), b""))

    assert (await asyncio.to_thread(ask)).startswith(b"HTTP/1.1 4")


@pytest.mark.parametrize("close", [b"", CLOSE])
@on_uvloop
async def test_a_trickle_after_a_refusal_ends(gate: Gate, close: bytes) -> None:
    """A body that nobody wants does not hold its connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", gate.port)
    writer.write(DENY + close + b"content-length: 1000000\r\n\r\n")
    assert b"401" in await reader.readline()
    began = time.monotonic()
    while time.monotonic() - began < 5 * SECONDS:
        try:
            writer.write(b"x")
            await writer.drain()
        except ConnectionError:
            break
        await asyncio.sleep(0.1)
    writer.close()
    assert time.monotonic() - began < 2.5 * SECONDS


@on_uvloop
async def test_a_connection_outlives_a_refusal(gate: Gate) -> None:
    """When the rest of the body comes in time, the next call is served."""
    deny = DENY + b"content-length: 10\r\n\r\n"
    got = await exchange(gate.port, deny, b"x" * 10, NEXT.replace(b"host: x", b"connection: close"))
    assert statuses(got) == [401, 200]


@on_uvloop
async def test_a_broken_rest_of_a_refused_body_has_no_second_answer(gate: Gate) -> None:
    """One request, one answer."""
    deny = DENY + b"transfer-encoding: chunked\r\n\r\n"
    assert statuses(await exchange(gate.port, deny, b"zz\r\n")) == [401]


@on_uvloop
async def test_whether_a_body_comes_after_a_refusal_is_not_guessed(gate: Gate) -> None:
    """Who asks whether to send it may send another request instead: that would be the body."""
    deny = DENY + b"expect: 100-continue\r\ncontent-length: %d\r\n\r\n" % len(NEXT)
    got = await exchange(gate.port, deny, NEXT)
    assert statuses(got) == [401]
    assert b"connection: close" in got


@on_uvloop
async def test_what_nobody_takes_does_not_hold_a_closed_connection(gate: Gate) -> None:
    """An answer that waits for its caller when the connection is to end has its time, too."""
    gate.listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    with socket.socket() as caller:
        caller.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        caller.connect(("127.0.0.1", gate.port))
        caller.sendall(b"GET /some HTTP/1.1\r\n" + CLOSE + b"\r\n")
        await asyncio.sleep(2.5 * SECONDS)
        caller.settimeout(1)
        got = 0
        with contextlib.suppress(ConnectionResetError):
            while piece := caller.recv(2**16):
                got += len(piece)
        assert 0 < got < SOME * len("/some")


async def test_the_end_of_the_process_does_not_take_a_refusal(gate: Gate) -> None:
    """It comes to who still sends, and holds up the end for a moment alone."""
    async with gate.open() as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", gate.port)
        writer.write(DENY + CLOSE + b"content-length: 3000000\r\n\r\n")
        await asyncio.sleep(0.1)
        began = time.monotonic()
        server.should_exit = True
        await asyncio.sleep(0.2)
        writer.write(b"x" * 1_000_000)
        assert (await reader.read()).endswith(b"denied")
        writer.close()
    assert time.monotonic() - began < 2
