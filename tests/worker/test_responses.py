"""Answers and readers that leave."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from starlette.requests import ClientDisconnect
from starlette.types import Message

from gateway.core.errors import InvalidRequest
from gateway.worker.responses import EventStream, while_connected


class _Client:
    """The other end of a connection."""

    def __init__(self) -> None:
        self.left = asyncio.Event()
        self.got: list[Message] = []

    async def receive(self) -> Message:
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        self.got.append(message)


async def _forever(ended: asyncio.Event) -> None:
    try:
        await asyncio.Event().wait()
    finally:
        ended.set()


async def test_work_ends_when_its_reader_leaves() -> None:
    """It is cancelled before the caller hears of it."""
    client, ended = _Client(), asyncio.Event()
    asyncio.get_running_loop().call_soon(client.left.set)
    with pytest.raises(ClientDisconnect):
        await while_connected(_forever(ended), client.receive)
    assert ended.is_set()


async def test_work_for_a_patient_reader_gives_its_result() -> None:
    """Or its error."""
    client = _Client()
    assert await while_connected(asyncio.sleep(0, 7), client.receive) == 7

    async def failing() -> None:
        raise InvalidRequest("no")

    with pytest.raises(InvalidRequest):
        await while_connected(failing(), client.receive)


async def test_a_stream_is_begun_by_its_first_event() -> None:
    """An error before it can still have a status of its own."""
    client = _Client()

    async def events(*, fail: bool) -> AsyncIterator[bytes]:
        if fail:
            raise InvalidRequest("no")
        yield b"a"
        yield b"b"

    with pytest.raises(InvalidRequest):
        await EventStream(events(fail=True))({}, client.receive, client.send)
    assert client.got == []
    await EventStream(events(fail=False))({}, client.receive, client.send)
    assert [m["type"].rsplit(".", 1)[1] for m in client.got] == ["start", "body", "body", "body"]
    assert [m["body"] for m in client.got[1:]] == [b"a", b"b", b""]


async def test_a_stream_ends_with_its_reader() -> None:
    """The source is closed at once, though it would have more."""
    client, ended = _Client(), asyncio.Event()

    async def events() -> AsyncIterator[bytes]:
        yield b"a"
        client.left.set()
        await _forever(ended)

    await EventStream(events())({}, client.receive, client.send)
    assert ended.is_set()
