"""A TCP server whose every byte a test writes, in the test's own event loop."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[object]]

_ENDS = (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError)


@contextlib.asynccontextmanager
async def raw_server(serve: Serve, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """The port where ``serve`` gets each connection; at the end all of them are closed."""
    running: set[asyncio.Task[object]] = set()

    async def whole(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        running.add(task)
        try:
            with contextlib.suppress(*_ENDS):
                await serve(reader, writer)
        finally:
            writer.transport.abort()
            running.discard(task)

    server = await asyncio.start_server(whole, "127.0.0.1", 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await asyncio.sleep(0)
