"""Answers that end when their reader leaves."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

T = TypeVar("T")

_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
]


async def while_connected(work: Coroutine[Any, Any, T], receive: Receive) -> T:
    """Result of ``work``; cancels it and raises ClientDisconnect as soon as the client leaves.

    The request's body must have been read.
    """
    working, leaving = asyncio.create_task(work), asyncio.create_task(_left(receive))
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        return working.result()
    finally:
        working.cancel()
        leaving.cancel()
        await asyncio.wait((working, leaving))


class EventStream(Response):
    """A stream of server-sent events.

    The head is sent with the first event: what goes wrong before it has a status of its own.
    """

    def __init__(self, events: AsyncIterator[bytes]) -> None:
        super().__init__()
        self._events = events

    async def __call__(self, _: Scope, receive: Receive, send: Send) -> None:
        """Send the events until they end or the client leaves."""
        try:
            await while_connected(self._send(send), receive)
        except ClientDisconnect:
            return

    async def _send(self, send: Send) -> None:
        begun = False
        async for event in self._events:
            if not begun:
                begun = True
                await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
            await send({"type": "http.response.body", "body": event, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
