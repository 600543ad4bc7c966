"""Who leaves is missed, whatever else was sent; and what was sent is answered in order."""

import asyncio
import contextlib
import socket
import struct
import time
from collections.abc import Iterator

import orjson
import pytest

from tests.support.contract import checked
from tests.support.gate import NEXT, SECONDS, WAIT, Gate, closed_gate, exchange, on_uvloop, statuses

POUR = b"GET /pour HTTP/1.1\r\nhost: x\r\n\r\n"


@pytest.fixture
def gate() -> Iterator[Gate]:
    """What is talked to."""
    with closed_gate() as made:
        yield made


async def until(reached: object, seconds: float) -> float:
    """Seconds until the list ``reached`` has something."""
    began = time.monotonic()
    while not reached and time.monotonic() - began < seconds:  # noqa: ASYNC110 - no event there
        await asyncio.sleep(0.01)
    return time.monotonic() - began


@pytest.mark.parametrize("first", [WAIT, POUR], ids=["waiting", "streaming"])
@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
@pytest.mark.parametrize(
    "behind",
    [NEXT, NEXT * 5000, NEXT.replace(b": 2", b": 900000") + b"x" * 800_000, b"P", b"}"],
    ids=["one", "many", "a long one", "a part", "stray"],
)
@on_uvloop
async def test_leaving_is_seen_whatever_waits_behind_the_call(
    gate: Gate, first: bytes, reset: bool, behind: bytes
) -> None:
    """Within a second, and no call that waited is begun."""
    caller = socket.create_connection(("127.0.0.1", gate.port))
    caller.sendall(first)
    await until(gate.app.begun, 5)
    caller.setblocking(False)
    await asyncio.wait_for(asyncio.get_running_loop().sock_sendall(caller, behind), 3)
    await asyncio.sleep(0.2)
    assert not gate.app.left
    if reset:
        caller.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    caller.close()
    assert await until(gate.app.left, 5) < 3
    await asyncio.sleep(0.1)
    assert len(gate.app.begun) == 1
    assert not gate.app.faults


@on_uvloop
async def test_what_waits_is_bounded_and_served_in_order(gate: Gate) -> None:
    """However many requests are sent at once, each has its answer."""
    calls = 30_000

    async def send(writer: asyncio.StreamWriter) -> None:
        for _ in range(calls // 100):
            writer.write(NEXT * 100)
            await writer.drain()

    reader, writer = await asyncio.open_connection("127.0.0.1", gate.port)
    writer.write(WAIT)
    sending = asyncio.create_task(send(writer))
    await asyncio.sleep(0.5)
    gate.app.go.set()
    seen = 0
    while seen < calls:
        seen += (await asyncio.wait_for(reader.read(2**16), 5)).count(b"/next")
    await sending
    writer.close()
    assert gate.app.begun == ["/wait", *["/next"] * calls]


@pytest.mark.parametrize("stray", [b"}", b"GARBAGE\r\n\r\n", NEXT[:-2].replace(b"2", b"-2")])
@on_uvloop
async def test_stray_bytes_are_refused_after_the_answer(gate: Gate, stray: bytes) -> None:
    """A call whose length was told too small has its answer, then the refusal, then the end."""
    asyncio.get_running_loop().call_later(0.2, gate.app.go.set)
    for pieces in ([WAIT + stray], [WAIT, stray], [WAIT, NEXT, stray], [NEXT, stray]):
        got = await exchange(gate.port, *pieces)
        assert statuses(got) == [200] * (len(pieces) - (pieces[-1] is stray)) + [400]
        body = got.rpartition(b"\r\n\r\n")[2]
        checked(orjson.loads(body), "error")


@on_uvloop
async def test_a_call_that_is_cut_short_is_not_begun(gate: Gate) -> None:
    """One that waits and turns out to be broken is refused in its turn."""
    chunked = b"POST /next HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n"
    asyncio.get_running_loop().call_later(0.3, gate.app.go.set)
    assert statuses(await exchange(gate.port, WAIT, chunked, b"zz\r\n")) == [200, 400]
    assert gate.app.begun == ["/wait"]


@pytest.mark.parametrize("stray", [b"\r\n", b"P"])
@on_uvloop
async def test_a_stray_line_does_not_end_a_call(gate: Gate, stray: bytes) -> None:
    """Some callers end a body with an empty line; a long call behind it has its time."""
    asyncio.get_running_loop().call_later(2.5 * SECONDS, gate.app.go.set)
    assert statuses(await exchange(gate.port, WAIT, stray))[0] == 200


@on_uvloop
async def test_a_reset_is_seen_when_nothing_more_is_read(gate: Gate) -> None:
    """Who sends more behind a call than is kept waits; a reset is still seen."""
    with socket.create_connection(("127.0.0.1", gate.port)) as caller:
        caller.sendall(WAIT)
        caller.settimeout(1)
        sent = 0
        with contextlib.suppress(TimeoutError):
            while sent < 100 * 2**20:
                sent += await asyncio.to_thread(caller.send, NEXT * 1000)
        assert 2**20 < sent < 100 * 2**20
        caller.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    assert await until(gate.app.left, 5) < 3
    assert gate.app.begun == ["/wait"]
