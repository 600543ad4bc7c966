"""The end of a connection on which more may be coming (RFC 9112, section 9.6).

A connection that is closed with bytes unread is reset, and a reset takes the answer with it that
the caller has not read yet. So only our side is shut, and what still comes is thrown away.
"""

import asyncio
from collections.abc import Callable

#: Without a byte for so long, nothing more is expected.
QUIET_SECONDS = 2.0
#: So much is thrown away, and no more: twice the largest body.
MOST_DROPPED = 64 * 2**20


class Linger:
    """Reads and drops until the caller closes, pauses or goes on for too long; then ``close``."""

    def __init__(
        self,
        transport: asyncio.Transport,
        loop: asyncio.AbstractEventLoop,
        seconds: float,
        close: Callable[[], None],
    ) -> None:
        self._loop = loop
        self._close = close
        self._left = MOST_DROPPED
        self._until = loop.time() + seconds
        self._fresh = False
        transport.write_eof()
        self._wait()

    def take(self, size: int) -> None:
        """Drop ``size`` bytes."""
        self._fresh = True
        self._left -= size
        if self._left < 0:
            self._close()

    def stop(self) -> None:
        """The connection is gone."""
        self._timer.cancel()

    def hurry(self) -> None:
        """The process ends: a moment for what is on its way, and no more."""
        self._until = min(self._until, self._loop.time() + QUIET_SECONDS / 4)
        self._timer.cancel()
        self._wait()

    def _wait(self) -> None:
        wait = min(QUIET_SECONDS, self._until - self._loop.time())
        self._timer = self._loop.call_later(wait, self._look)

    def _look(self) -> None:
        if not self._fresh or self._loop.time() >= self._until:
            self._close()
            return
        self._fresh = False
        self._wait()
