"""When a connection is read, and how its end is noticed while it is not."""

import asyncio
import select

from uvicorn.protocols.http.flow_control import FlowControl

_LOOK_EVERY = 0.5
#: The caller has sent its last byte, read or not; where the system cannot tell, a reset alone.
_LEFT = getattr(select, "POLLRDHUP", 0)


class Flow(FlowControl):
    """Stops reading when a part of a body waits to be taken, or ``hold`` says that enough waits.

    An event loop that does not read does not see that the caller has left. So the socket is asked
    now and then meanwhile, and the connection aborted.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(transport)
        self._loop = loop
        self._held = False
        self._timer: asyncio.TimerHandle | None = None

    def pause_reading(self) -> None:
        """Read no more until something is taken."""
        if not self.read_paused:
            super().pause_reading()
            self._timer = self._loop.call_later(_LOOK_EVERY, self._look)

    def resume_reading(self) -> None:
        """Read on, unless enough waits."""
        if self.read_paused and not self._held:
            self._stop_looking()
            super().resume_reading()

    def hold(self) -> None:
        """Enough waits: read no more until ``let_go``, whatever is taken."""
        self._held = True
        self.pause_reading()

    def let_go(self) -> None:
        """Nothing waits any more."""
        self._held = False
        self.resume_reading()

    def left(self) -> bool:
        """Whether the caller has left while nothing was read; then the connection is aborted."""
        if not self.read_paused or not _has_left(self._transport):
            return False
        self._transport.abort()
        return True

    def close(self) -> None:
        """The connection is gone: nothing waits for it any more."""
        self._stop_looking()
        self.resume_writing()

    def _look(self) -> None:
        if not self._transport.is_closing() and not self.left():
            self._timer = self._loop.call_later(_LOOK_EVERY, self._look)

    def _stop_looking(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


def _has_left(transport: asyncio.Transport) -> bool:
    """Whether the other side has closed or reset the connection, by what the system knows."""
    poll = select.poll()
    poll.register(transport.get_extra_info("socket").fileno(), _LEFT)
    return bool(poll.poll(0))
