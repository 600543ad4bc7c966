"""A connection that is not read still tells that its caller has left."""

import asyncio
import socket
import struct
from typing import cast

import pytest
import uvloop

from gateway.api.flow import Flow


class _Watched(asyncio.Protocol):
    """Notes what arrives and when the connection was lost."""

    def __init__(self) -> None:
        self.lost = asyncio.Event()
        self.got = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.flow = Flow(cast("asyncio.Transport", transport), asyncio.get_running_loop())

    def data_received(self, data: bytes) -> None:
        self.got += data

    def connection_lost(self, exc: Exception | None) -> None:
        self.flow.close()
        self.lost.set()


async def _connected() -> tuple[_Watched, socket.socket]:
    ours, caller = socket.socketpair()
    _, watched = await asyncio.get_running_loop().create_connection(_Watched, sock=ours)
    return watched, caller


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
def test_leaving_is_seen_while_nothing_is_read(run: object) -> None:
    """Whether or not something is unread; not before, and not when it is asked for nothing."""

    async def leave() -> None:
        for unread in (b"", b"unread"):
            watched, caller = await _connected()
            watched.flow.pause_reading()
            caller.sendall(unread)
            await asyncio.sleep(0.7)
            assert not watched.flow.left()
            caller.close()
            await asyncio.wait_for(watched.lost.wait(), 5)
            assert not watched.got

    run(leave())  # type: ignore[operator]


def test_a_reset_is_seen_while_nothing_is_read() -> None:
    """A caller that ends at once sends no end of its own."""

    async def reset() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            caller = socket.create_connection(listener.getsockname())
            ours, _ = listener.accept()
        _, watched = await asyncio.get_running_loop().create_connection(_Watched, sock=ours)
        watched.flow.hold()
        caller.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        caller.close()
        await asyncio.wait_for(watched.lost.wait(), 5)

    uvloop.run(reset())


def test_a_held_connection_is_read_when_it_is_let_go() -> None:
    """Until then, whoever asks for more gets nothing."""

    async def held() -> None:
        watched, caller = await _connected()
        watched.flow.hold()
        caller.sendall(b"more")
        watched.flow.resume_reading()
        await asyncio.sleep(0.05)
        early = watched.got
        watched.flow.let_go()
        async with asyncio.timeout(5):
            while not watched.got:  # noqa: ASYNC110 - no event there
                await asyncio.sleep(0.01)
        assert (early, watched.got) == (b"", b"more")
        caller.close()
        await asyncio.wait_for(watched.lost.wait(), 5)

    uvloop.run(held())
