"""New connections are taken as many as wait, whatever else the loop does."""

import asyncio
import contextlib
import logging
import os
import resource
import socket
from collections.abc import AsyncIterator, Iterator

import pytest
import uvloop

from gateway.bootstrap.acceptor import Acceptor
from gateway.bootstrap.listen import listen


class _Door:
    """A listening socket, who was let in by it, and callers that wait before it."""

    def __init__(self, listener: socket.socket, callers: int) -> None:
        self.served: list[asyncio.BaseTransport] = []
        self.acceptor = Acceptor(listener, lambda: _Protocol(self.served))
        self.callers = [socket.create_connection(listener.getsockname()) for _ in range(callers)]

    def close(self) -> None:
        for caller in self.callers:
            caller.close()
        for transport in self.served:
            transport.close()


class _Protocol(asyncio.Protocol):
    def __init__(self, served: list[asyncio.BaseTransport]) -> None:
        self._served = served

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._served.append(transport)


@contextlib.asynccontextmanager
async def _door(callers: int) -> AsyncIterator[_Door]:
    with listen("127.0.0.1", 0) as listener:
        door = _Door(listener, callers)
        try:
            yield door
        finally:
            door.acceptor.close()
            door.close()


@contextlib.contextmanager
def _no_descriptor_left() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest_free = os.open(os.devnull, os.O_RDONLY)
    os.close(lowest_free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_crowd_is_taken_within_a_few_passes_of_the_loop() -> None:
    """The event loop's own server would need 150 passes, each as long as all streams take."""

    async def crowd() -> None:
        async with _door(callers=150) as door:
            door.acceptor.start()
            for _ in range(20):
                await asyncio.sleep(0)
            assert len(door.served) == 150

    uvloop.run(crowd())


def test_nobody_is_taken_after_the_close() -> None:
    """Who calls a gateway that ends is not let in to be turned away."""

    async def closed() -> None:
        async with _door(callers=1) as door:
            door.acceptor.start()
            door.acceptor.close()
            await asyncio.sleep(0.05)
            assert not door.served

    uvloop.run(closed())


@pytest.mark.parametrize("closes", [False, True])
def test_without_a_descriptor_callers_wait_until_there_is_one(
    closes: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """They are served later, unless the gateway ends meanwhile; the log says why they wait."""

    async def crowded() -> None:
        async with _door(callers=1) as door:
            door.acceptor.start()
            with _no_descriptor_left():
                await asyncio.sleep(0.05)
            assert not door.served
            if closes:
                door.acceptor.close()
            await asyncio.sleep(0.6)
            assert len(door.served) == (0 if closes else 1)

    with caplog.at_level(logging.WARNING):
        uvloop.run(crowded())
    assert caplog.text.count("no new connection") == 1
