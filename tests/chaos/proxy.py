"""Between the product and its queue server: loses replies, is slow, cuts connections."""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from pathlib import Path

_SCRIPT = b"EVALSHA"


class FaultyProxy:
    """Listens on the unix socket ``path`` and forwards to the one that ``target`` names."""

    def __init__(self, path: Path, target: Callable[[], Path | None]) -> None:
        self.path = path
        self._target = target
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._links: set[_Link] = set()
        self._server: asyncio.Server | None = None
        self.to_lose = 0
        self.lost = 0
        self.delay = 0.0
        self.parted = False

    @property
    def url(self) -> str:
        """Where the product connects."""
        return f"unix://{self.path}"

    def start(self) -> None:
        """Listen."""
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(5)

    def stop(self) -> None:
        """Close everything."""
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(5)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()

    def cut(self) -> int:
        """Close every connection, in the middle of whatever goes over it; how many there were."""
        links = list(self._links)
        for link in links:
            self._loop.call_soon_threadsafe(link.cut)
        return len(links)

    async def whole(self) -> None:
        """Wait until nothing is ``parted``: no byte gets through until then, either way."""
        while self.parted:  # noqa: ASYNC110 - set from another thread
            await asyncio.sleep(0.02)

    async def _listen(self) -> None:
        self._server = await asyncio.start_unix_server(self._link, path=self.path)

    async def _close(self) -> None:
        assert self._server is not None
        self._server.close()
        tasks = [link.task for link in self._links if link.task is not None]
        for link in list(self._links):
            link.cut()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _link(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self.whole()
        target = self._target()
        try:
            assert target is not None
            far_reader, far_writer = await asyncio.open_unix_connection(target)
        except (OSError, AssertionError):
            writer.close()
            return
        link = _Link(self, (writer, far_writer))
        link.task = asyncio.current_task()
        self._links.add(link)
        try:
            with contextlib.suppress(OSError):
                await link.run(reader, far_reader)
        finally:
            link.cut()
            self._links.discard(link)


class _Link:
    """One connection of the product and its other half."""

    def __init__(
        self, proxy: FaultyProxy, writers: tuple[asyncio.StreamWriter, asyncio.StreamWriter]
    ) -> None:
        self._proxy = proxy
        self._near, self._far = writers
        self._script = False
        self.task: asyncio.Task[None] | None = None

    def cut(self) -> None:
        for writer in (self._near, self._far):
            writer.close()

    async def run(self, near: asyncio.StreamReader, far: asyncio.StreamReader) -> None:
        """Forward until one side closes."""
        ways = {
            asyncio.ensure_future(self._requests(near)),
            asyncio.ensure_future(self._replies(far)),
        }
        _, running = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for way in running:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)

    async def _requests(self, near: asyncio.StreamReader) -> None:
        while data := await near.read(65536):
            if self._proxy.delay:
                await asyncio.sleep(self._proxy.delay)
            await self._proxy.whole()
            self._script = _SCRIPT in data
            self._far.write(data)
            await self._far.drain()

    async def _replies(self, far: asyncio.StreamReader) -> None:
        while data := await far.read(65536):
            if self._script and self._proxy.to_lose > 0:
                self._proxy.to_lose -= 1
                self._proxy.lost += 1
                return
            await self._proxy.whole()
            self._near.write(data)
            await self._near.drain()
