"""Takes new connections from a listening socket, as many as wait there."""

import asyncio
import logging
import socket
from collections.abc import Callable

_log = logging.getLogger(__name__)

_AT_ONCE = 64
_PAUSE_SECONDS = 0.5


class Acceptor:
    """Gives each new connection of ``listener`` a protocol, from ``start`` until ``close``.

    The event loop's own server takes one connection a pass. With a pass of 20 ms, as under 500
    streams, that is 50 a second, and who calls anew waits for seconds. This one takes up to 64.
    When the process has no descriptor left, new connections wait in the socket's backlog.
    """

    def __init__(self, listener: socket.socket, protocol: Callable[[], asyncio.Protocol]) -> None:
        self._listener = listener
        self._protocol = protocol
        self._joining: set[asyncio.Task[None]] = set()
        self._pause: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()

    def start(self) -> None:
        """Take connections from now on."""
        self._pause = None
        self._loop.add_reader(self._listener, self._accept)

    def close(self) -> None:
        """Take no more; the socket stays open and is the caller's to close."""
        if self._pause is not None:
            self._pause.cancel()
            self._pause = None
        self._loop.remove_reader(self._listener)

    def _accept(self) -> None:
        for _ in range(_AT_ONCE):
            try:
                connection, _ = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                _log.warning("no new connection can be taken for a while: %s", error.strerror)
                self._loop.remove_reader(self._listener)
                self._pause = self._loop.call_later(_PAUSE_SECONDS, self.start)
                return
            connection.setblocking(False)
            task = self._loop.create_task(self._join(connection))
            self._joining.add(task)
            task.add_done_callback(self._joining.discard)

    async def _join(self, connection: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self._protocol, connection)
        except OSError:
            connection.close()
