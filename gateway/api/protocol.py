"""uvicorn's HTTP/1.1 with limits: how long a request's head may be, and how long it may take.

What a connection sends is parsed before anybody is known to be behind it, so what is kept of it
and the time given to it are bounded here. So is the time for which a caller may take nothing of
what waits for it: at most 64 KiB of a stream wait here, and its target is not read meanwhile.

What comes behind a request that waits for the one before it is set aside, up to 1 MiB, so that
its caller is still seen to leave; then nothing of it is served. Bytes that are no HTTP are refused
in their turn.

An upgrade that is asked for is not made, and its request is served as any other: clients offer
HTTP/2 in this way by default.
"""

import asyncio
from urllib.parse import unquote

import httptools
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT

from gateway.api.connection import Connection, Stage
from gateway.api.cycle import Cycle
from gateway.api.linger import MOST_DROPPED
from gateway.api.refused import LONGEST_HEAD
from gateway.api.upgrade import without_upgrade

_TOLD = frozenset({b"expect", b"transfer-encoding"})


class GatewayProtocol(Connection):
    """Parses what a connection sends, and serves it in turn."""

    def data_received(self, data: bytes) -> None:
        """Take bytes as they come. What does not end a part of a request adds up, and is bounded.

        The parser keeps an unfinished header and joins it anew with each piece.
        """
        if self._deaf or self.pipeline:
            self._set_aside(data)
        else:
            self._parse(data)

    def _parse(self, data: bytes) -> None:
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
        if self._stage is Stage.IDLE:
            self._stage, self._since = Stage.START, self.loop.time()
        self._loose += len(data)
        if self._loose > LONGEST_HEAD:
            self._refuse(self._too_long())

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self._moved = True
        self._stage = Stage.HEAD
        self._since = self.loop.time()

    def on_header(self, name: bytes, value: bytes) -> None:
        """A line of the head."""
        name = name.lower()
        if name in _TOLD:
            if name == b"expect":
                self.expect_100_continue = value.lower() == b"100-continue"
            elif value.strip().lower() != b"chunked":
                self._refusal = 501
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """The head is there: the call begins, unless the parser is about to leave its body out."""
        if self._fed > LONGEST_HEAD:
            self._measure()
        if self._refusal == 501:  # noqa: PLR2004 - set by a line of this head
            raise ValueError(self._refusal)
        self._stage = Stage.BODY
        self._since = self.loop.time()
        self._upgrade = self.parser.should_upgrade()
        if not self._upgrade:
            self._begin_call()

    def on_body(self, body: bytes) -> None:
        """A piece of the body; of a call that has its answer already it is dropped."""
        self._moved = True
        self._since = self.loop.time()
        cycle = self.cycle
        if cycle.response_complete:
            self._dropped += len(body)
            if self._dropped > MOST_DROPPED:
                self._shut()
            return
        cycle.body += body
        if len(cycle.body) > HIGH_WATER_LIMIT and cycle is self._served:
            self.flow.pause_reading()
        cycle.message_event.set()

    def on_message_complete(self) -> None:
        """The request is whole."""
        if self._upgrade:
            return
        self._moved = True
        self._stage = Stage.IDLE
        self._dropped = 0
        self.cycle.more_body = False
        self.cycle.message_event.set()

    def on_response_complete(self) -> None:
        """The answer is out: the next call may begin; ``_look`` ends a connection without one."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self._answered = self.loop.time()
        served = self._served
        if served is not None and not served.keep_alive:
            self._end(more=served.more_body or self._deaf or bool(self.pipeline))
        elif self.pipeline:
            self._serve_next()
        elif self._deaf:
            self._refuse(self._refusal)
        else:
            self.flow.resume_reading()

    def _begin_call(self) -> None:
        """As the base class begins it, with a cycle of our own."""
        parser, scope = self.parser, self.scope
        version = scope["http_version"] = parser.get_http_version()
        old = version < "1.1"
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
            expect_100_continue=self.expect_100_continue and not old,
            keep_alive=not old and parser.should_keep_alive(),
            on_response=self.on_response_complete,
        )
        self.headers = []  # what comes after the body is no header
        if before is None or before.response_complete:
            self._served = self.cycle
            self._start_asgi_task(self.cycle, self.app)
        else:
            self.pipeline.appendleft((self.cycle, self.app))

    def _serve_next(self) -> None:
        """Begin a call that has waited for the one before it, if anybody still waits for it."""
        if self.flow.left():
            return
        self._served, app = self.pipeline.pop()
        self._start_asgi_task(self._served, app)
        while self._aside and not self.pipeline and not self._deaf:
            self._parse(self._aside.popleft())
        if not self._aside:
            self._kept = 0
            self.flow.let_go()

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
        first = b"%b %b HTTP/%b" % (method, self.url, self.parser.get_http_version().encode())
        return without_upgrade(first, self.headers)

    def _measure(self) -> None:
        """Raise when the head that is complete is too long."""
        size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        if size > LONGEST_HEAD:
            self._refusal = self._too_long()
            raise ValueError(self._refusal)

    def _too_long(self) -> int:
        return 414 if self._stage is Stage.HEAD and len(self.url) > LONGEST_HEAD else 431


def limited(receive_seconds: float, send_seconds: float) -> type[GatewayProtocol]:
    """The protocol with ``receive_seconds`` for a head, and for each pause in a body.

    ``send_seconds`` are for the caller to take something of an answer that waits.
    """
    times = {"receive_seconds": receive_seconds, "send_seconds": send_seconds}
    return type("LimitedProtocol", (GatewayProtocol,), times)
