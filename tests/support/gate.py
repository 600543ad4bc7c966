"""The gateway's server before an application that answers each path in its way."""

import asyncio
import contextlib
import functools
import socket
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any

import uvloop
from starlette.types import Receive, Scope, Send

from gateway.bootstrap.listen import listen
from gateway.bootstrap.server import GatewayServer

WAIT = b"POST /wait HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\nab"
NEXT = b"POST /next HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\nab"
SECONDS = 1.0
SOME = 10_000


class App:
    """Answers each path in its way; tells which calls began and when each one's caller left."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.left: list[str] = []
        self.faults: list[Exception] = []
        self.go = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        path = scope["path"]
        if path != "/deny":
            while (message := await receive()).get("more_body"):
                pass
            if message["type"] == "http.disconnect":
                self.left.append(path)
                return
        self.begun.append(path)
        work = asyncio.ensure_future(self._answer(path, send))
        gone = asyncio.ensure_future(self._gone(path, receive))
        await asyncio.wait([work, gone], return_when=asyncio.FIRST_COMPLETED)
        for task in (work, gone):
            task.cancel()
        if work.done() and not work.cancelled() and isinstance(work.exception(), Exception):
            self.faults.append(work.exception())  # type: ignore[arg-type]

    async def _answer(self, path: str, send: Send) -> None:
        status, data = (401, b"denied") if path == "/deny" else (200, path.encode())
        data *= SOME if path == "/some" else 1
        length = [] if path == "/pour" else [(b"content-length", b"%d" % len(data))]
        if path == "/last":
            length.append((b"connection", b"close"))
        if path == "/wait":
            await self.go.wait()
        await send({"type": "http.response.start", "status": status, "headers": length})
        while path == "/pour" and not self.go.is_set():
            await send({"type": "http.response.body", "body": b"piece", "more_body": True})
            await asyncio.sleep(0.01)
        await send({"type": "http.response.body", "body": data})

    async def _gone(self, path: str, receive: Receive) -> None:
        if path == "/deny":
            await asyncio.Event().wait()
        while (await receive())["type"] != "http.disconnect":
            pass
        self.left.append(path)


class Gate:
    """A server of an application of its own."""

    def __init__(self, listener: socket.socket) -> None:
        self.app = App()
        self.port: int = listener.getsockname()[1]
        self.listener = listener

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[GatewayServer]:
        """Serve."""
        server = GatewayServer(
            self.app, log_level="error", receive_seconds=SECONDS, send_seconds=SECONDS
        )
        serving = asyncio.create_task(server.serve([self.listener]))
        await asyncio.sleep(0)
        try:
            yield server
        finally:
            self.app.go.set()
            server.should_exit = True
            await asyncio.wait_for(serving, 5)


@contextlib.contextmanager
def closed_gate() -> Iterator[Gate]:
    """One that opens in the test's own event loop."""
    with listen("127.0.0.1", 0) as listener:
        yield Gate(listener)


def on_uvloop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run on the loop that the gateway runs on, with the gate open."""

    async def opened(gate: Gate, given: dict[str, Any]) -> None:
        async with gate.open():
            await test(gate, **given)

    @functools.wraps(test)
    def run(gate: Gate, **given: Any) -> None:
        uvloop.run(opened(gate, given))

    return run


async def exchange(port: int, *pieces: bytes, pause: float = 0.05) -> bytes:
    """All that comes back until the connection is closed."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for piece in pieces:
        writer.write(piece)
        await asyncio.sleep(pause)
    got = await asyncio.wait_for(reader.read(), 5)
    writer.close()
    return got


def statuses(got: bytes) -> list[int]:
    """The statuses of all answers in ``got``."""
    return [int(part[:3]) for part in got.split(b"HTTP/1.1 ")[1:]]
