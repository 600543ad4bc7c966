"""uvicorn's HTTP/1.1 with limits: how long a request's head may be, and how long it may take.

What a connection sends is parsed before anybody is known to be behind it, so what is kept of it
and the time given to it are bounded here. So is the time for which a caller may take nothing of
what waits for it: at most 64 KiB of a stream wait here, and its target is not read meanwhile.

An upgrade that is asked for is not made, and its request is served as any other: clients offer
HTTP/2 in this way by default.
"""

import asyncio
from enum import Enum, auto
from typing import ClassVar
from urllib.parse import unquote

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from gateway.api.cycle import Cycle
from gateway.api.errors import refusal
from gateway.core.ids import new_id

_LONGEST_HEAD = 64 * 1024
_UPGRADE = frozenset({b"upgrade", b"http2-settings"})
_MESSAGES = {
    400: "The request is not valid HTTP.",
    408: "The request did not come within the time for it.",
    414: f"The request URL is longer than {_LONGEST_HEAD} bytes.",
    431: f"The request's head is longer than {_LONGEST_HEAD} bytes.",
}


class _Stage(Enum):
    """What a connection waits for: its first bytes, more of a head or a body, another request."""

    START = auto()
    HEAD = auto()
    BODY = auto()
    IDLE = auto()


class GatewayProtocol(HttpToolsProtocol):
    """One connection. A subclass of ``limited`` sets the two times."""

    receive_seconds: ClassVar[float]
    send_seconds: ClassVar[float]

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request, not for ever."""
        super().connection_made(transport)
        self._stage = _Stage.START
        self._since = self._answered = self.loop.time()
        self._fed = self._loose = 0
        self._moved = self._upgrade = False
        self._refusal = 400
        self._timer = self.loop.call_later(self.receive_seconds, self._look)
        self._stuck: asyncio.TimerHandle | None = None

    def pause_writing(self) -> None:
        """The caller takes less than comes: it must take something now and then."""
        super().pause_writing()
        self._watch_reader()

    def resume_writing(self) -> None:
        """The caller has caught up."""
        if self._stuck is not None:
            self._stuck.cancel()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing more to watch."""
        self._timer.cancel()
        if self._stuck is not None:
            self._stuck.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take bytes as they come. What does not end a part of a request adds up, and is bounded.

        The parser keeps an unfinished header and joins it anew with each piece.
        """
        if self.transport.is_closing():
            return
        self._moved = False
        self._fed = self._loose + len(data)
        try:
            self._feed(data)
        except httptools.HttpParserError:
            self._refuse(self._refusal)
            return
        if self._moved:
            self._loose = 0
            return
        if self._stage is _Stage.IDLE:
            self._stage, self._since = _Stage.START, self.loop.time()
        self._loose += len(data)
        if self._loose > _LONGEST_HEAD:
            self._refuse(self._too_long())

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self._moved = True
        self._stage = _Stage.HEAD
        self._since = self.loop.time()

    def on_headers_complete(self) -> None:
        """The head is there: the call begins, unless the parser is about to leave its body out."""
        if self._fed > _LONGEST_HEAD:
            self._measure()
        self._stage = _Stage.BODY
        self._since = self.loop.time()
        self._upgrade = self.parser.should_upgrade()
        if not self._upgrade:
            self._begin_call()

    def on_body(self, body: bytes) -> None:
        """A piece of the body."""
        self._moved = True
        self._since = self.loop.time()
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is whole."""
        if self._upgrade:
            return
        self._moved = True
        self._stage = _Stage.IDLE
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """The answer is out: the next call may begin; ``_look`` ends a connection without one."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self._answered = self.loop.time()
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())

    def _begin_call(self) -> None:
        """As the base class begins it, with a cycle of our own."""
        parser, scope = self.parser, self.scope
        version = scope["http_version"] = parser.get_http_version()
        url = httptools.parse_url(self.url)
        path = url.path.decode("ascii")
        scope["method"] = parser.get_method().decode("ascii")
        scope["path"] = unquote(path) if "%" in path else path
        scope["raw_path"] = url.path
        scope["query_string"] = url.query or b""
        before = self.cycle
        self.cycle = Cycle(
            scope,
            self.transport,
            self.flow,
            self.logger,
            self.access_logger,
            access_log=False,
            default_headers=[],
            message_event=asyncio.Event(),
            expect_100_continue=self.expect_100_continue,
            keep_alive=version != "1.0" and parser.should_keep_alive(),
            on_response=self.on_response_complete,
        )
        if before is None or before.response_complete:
            self._start_asgi_task(self.cycle, self.app)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((self.cycle, self.app))

    def _feed(self, data: bytes) -> None:
        while True:
            try:
                self.parser.feed_data(data)
            except httptools.HttpParserUpgrade as stopped:
                data = data[stopped.args[0] :]
                head = self._plain_head()
                self.parser = httptools.HttpRequestParser(self)
                self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
                self.parser.feed_data(head)
            else:
                return

    def _plain_head(self) -> bytes:
        """The head once more without the wish for another protocol."""
        method = self.parser.get_method()
        if method == b"CONNECT":
            raise httptools.HttpParserError
        lines = [b"%b %b HTTP/%b" % (method, self.url, self.parser.get_http_version().encode())]
        for name, value in self.headers:
            if name in _UPGRADE:
                continue
            kept = value
            if name == b"connection":
                tokens = [token.strip() for token in value.split(b",")]
                kept = b", ".join(t for t in tokens if t.lower() not in _UPGRADE)
            lines.append(b"%b: %b" % (name, kept))
        return b"\r\n".join([*lines, b"", b""])

    def _measure(self) -> None:
        """Raise when the head that is complete is too long."""
        size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        if size > _LONGEST_HEAD:
            self._refusal = self._too_long()
            raise ValueError(_MESSAGES[self._refusal])

    def _too_long(self) -> int:
        return 414 if self._stage is _Stage.HEAD and len(self.url) > _LONGEST_HEAD else 431

    def _look(self) -> None:
        """Now and then: end a connection whose request has stopped coming."""
        now = self.loop.time()
        if self._stage is _Stage.IDLE or self.flow.read_paused:
            self._since = now
            if self._is_idle() and now - self._answered > self.timeout_keep_alive:
                self.transport.close()
                return
        left = self._since + self.receive_seconds - now
        answered = self._stage is _Stage.BODY and self._is_idle()
        if left > 0:
            self._timer = self.loop.call_later(left, self._look)
        elif self._stage is _Stage.START or answered:
            self.transport.close()
        else:
            self._refuse(408)

    def _is_idle(self) -> bool:
        return self.cycle is not None and self.cycle.response_complete

    def _watch_reader(self) -> None:
        self._left = self.transport.get_write_buffer_size()
        self._stuck = self.loop.call_later(self.send_seconds, self._look_at_reader)

    def _look_at_reader(self) -> None:
        """End a connection that took nothing; its call ends as one whose caller has left."""
        if self.transport.get_write_buffer_size() < self._left:
            self._watch_reader()
        else:
            self.transport.abort()

    def _refuse(self, status: int) -> None:
        """Answer what cannot be served, unless an answer is under way, and close."""
        cycle = self.cycle
        idle = cycle is None or cycle.response_complete
        if not self.transport.is_closing() and (
            idle or (cycle.more_body and not cycle.response_started)
        ):
            self.transport.write(_refused(status))
        self.transport.close()


def _refused(status: int) -> bytes:
    """The whole answer to what never became a request of the application."""
    body = refusal(_MESSAGES[status])
    return (
        b"%bcontent-type: application/json\r\ncontent-length: %d\r\nx-request-id: %b\r\n"
        b"connection: close\r\n\r\n%b"
    ) % (STATUS_LINE[status], len(body), new_id("req").encode(), body)


def limited(receive_seconds: float, send_seconds: float) -> type[GatewayProtocol]:
    """The protocol with ``receive_seconds`` for a head, and for each pause in a body.

    ``send_seconds`` are for the caller to take something of an answer that waits.
    """
    times = {"receive_seconds": receive_seconds, "send_seconds": send_seconds}
    return type("LimitedProtocol", (GatewayProtocol,), times)
