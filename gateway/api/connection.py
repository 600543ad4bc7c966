"""A connection and its end: how long it may do nothing, who has left, what is refused.

Nothing is read here but the clock: the bytes are the protocol's.
"""

import asyncio
from collections import deque
from enum import Enum, auto
from typing import ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from gateway.api.cycle import cut_off
from gateway.api.flow import Flow
from gateway.api.linger import Linger
from gateway.api.refused import refused

#: Bytes. Who has left is not seen behind more than this and what the system keeps unread.
_MOST_ASIDE = 2**20
_PIECE_COST = 64


class Stage(Enum):
    """What a connection waits for: its first bytes, more of a head or a body, another request."""

    START = auto()
    HEAD = auto()
    BODY = auto()
    IDLE = auto()


class Connection(HttpToolsProtocol):
    """One connection. A subclass of ``limited`` sets the two times."""

    receive_seconds: ClassVar[float]
    send_seconds: ClassVar[float]

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request, not for ever."""
        super().connection_made(transport)
        self.flow: Flow = Flow(transport, self.loop)
        self._stage = Stage.START
        self._since = self._answered = self.loop.time()
        self._fed = self._loose = self._dropped = self._kept = 0
        self._moved = self._upgrade = False
        self._refusal = 400
        self._timer = self.loop.call_later(self.receive_seconds, self._look)
        self._stuck: asyncio.TimerHandle | None = None
        #: Whose answer is under way, or was the last one; ``cycle`` is the last that was parsed.
        self._served: RequestResponseCycle | None = None
        #: What comes is no longer parsed: ``_refusal`` is to be told, or the end has begun.
        self._deaf = False
        self._aside: deque[bytes] = deque()
        self._linger: Linger | None = None

    def pause_writing(self) -> None:
        """The caller takes less than comes: it must take something now and then."""
        super().pause_writing()
        self._watch_reader()

    def resume_writing(self) -> None:
        """The caller has caught up."""
        if self._stuck is not None and not self.transport.is_closing():
            self._stuck.cancel()
        super().resume_writing()

    def eof_received(self) -> None:
        """The caller sends no more, so it has left, whatever of the answer is still unsent."""
        if self._served is not None:
            cut_off(self._served)

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing more to watch, and nobody to serve."""
        self._timer.cancel()
        if self._stuck is not None:
            self._stuck.cancel()
        if self._linger is not None:
            self._linger.stop()
        self.pipeline.clear()
        self.flow.close()
        if self._served is not None:
            cut_off(self._served)
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """The process ends: close when the answer under way is out."""
        served = self._served
        if served is not None and not served.response_complete:
            served.keep_alive = False
            return
        if self._linger is None:
            self._end(more=served is not None and served.more_body)
        if self._linger is not None:
            self._linger.hurry()

    def _set_aside(self, data: bytes) -> None:
        """Keep what comes while a request waits; drop it when nothing more is served."""
        if self._linger is not None:
            self._linger.take(len(data))
            return
        self._aside.append(data)
        self._kept += len(data) + _PIECE_COST
        if self._kept > _MOST_ASIDE:
            self.flow.hold()

    def _look(self) -> None:
        """Now and then: end a connection whose request has stopped coming."""
        now, served = self.loop.time(), self._served
        idle = served is not None and served.response_complete
        busy = served is not None and not idle and not served.more_body
        if self._stage is Stage.IDLE or self.flow.read_paused or busy:
            self._since = now
            if idle and now - self._answered > self.timeout_keep_alive:
                self._shut()
                return
        answered = idle and self._stage is Stage.BODY
        left = (self._answered if answered else self._since) + self.receive_seconds - now
        if left > 0:
            self._timer = self.loop.call_later(left, self._look)
        elif self._stage is Stage.START or answered:
            self._shut()
        else:
            self._refuse(408)

    def _watch_reader(self) -> None:
        if self._stuck is not None:
            self._stuck.cancel()
        self._left = self.transport.get_write_buffer_size()
        self._stuck = self.loop.call_later(self.send_seconds, self._look_at_reader)

    def _look_at_reader(self) -> None:
        """End a connection that took nothing; its call ends as one whose caller has left."""
        if self.transport.get_write_buffer_size() < self._left:
            self._watch_reader()
        else:
            self.transport.abort()

    def _refuse(self, status: int) -> None:
        """Answer what cannot be served, after the answers to what came before it, and end."""
        served, self._deaf = self._served, True
        if self.transport.is_closing():
            return
        if served is None or (served.response_complete and not served.more_body):
            self._tell(status)
        elif served.response_complete:
            self._end(more=True)
        elif not served.more_body:
            self._refusal = status
            if self.pipeline and self.pipeline[0][0].more_body:
                self.pipeline.popleft()
        elif served.response_started:
            self._shut()
        else:
            cut_off(served)
            self._tell(status)

    def _tell(self, status: int) -> None:
        self.transport.write(refused(status))
        self._end(more=True)

    def _end(self, *, more: bool) -> None:
        """The last answer is out: close, after a while when ``more`` may be coming."""
        self._deaf = True
        self._aside.clear()
        if more:
            self._timer.cancel()
            self._linger = Linger(self.transport, self.loop, self.receive_seconds, self._shut)
            self.flow.let_go()
        else:
            self._shut()

    def _shut(self) -> None:
        """Close. What the caller has not taken still goes out, unless it takes nothing more."""
        self._deaf = True
        self.transport.close()
        if self.transport.get_write_buffer_size():
            self._watch_reader()
