"""Listening, and ending at once."""

import asyncio

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from gateway.core.errors import PortInUse
from gateway.core.quick_server import QuickServer, bound


def test_a_taken_port_is_said() -> None:
    """With who wanted it and where."""
    with bound("127.0.0.1", 0, "the worker") as taken:
        port = taken.getsockname()[1]
        taken.listen()
        with pytest.raises(PortInUse, match=f"the engine cannot listen on 127.0.0.1:{port}"):
            bound("127.0.0.1", port, "the engine")


async def test_it_ends_while_a_call_runs() -> None:
    """``leave`` waits for nobody."""
    begun = asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        begun.set()
        await asyncio.sleep(60)

    listener = bound("127.0.0.1", 0, "it")
    config = uvicorn.Config(app, log_config=None, lifespan="off", ws="none")
    server = QuickServer(config)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    while not server.started:  # noqa: ASYNC110 - uvicorn tells in no other way
        await asyncio.sleep(0.01)
    _, writer = await asyncio.open_connection(*listener.getsockname())
    writer.write(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
    async with asyncio.timeout(10):
        await begun.wait()
        server.leave()
        await serving
    writer.close()
