"""One HTTP/1.1 connection to a target. It serves one exchange after the other, never two."""

import asyncio
from collections.abc import Callable

import httptools

from gateway.core.errors import (
    OutcomeUnknown,
    UpstreamError,
    UpstreamFailed,
    UpstreamTimeout,
)
from gateway.core.targets import Timeouts
from gateway.providers.broken_answers import ended_early
from gateway.providers.deadline import Deadline

_LONGEST_HEAD = 64 * 1024
_MOST_UNREAD = 256 * 1024
_FINAL = 200

RawHeaders = list[tuple[bytes, bytes]]


class Connection(asyncio.Protocol):
    """Sends a request, reads the answer's head, then its body piece by piece.

    ``used`` says that an exchange has ended here before, ``silent`` that no byte of the current
    answer has come. ``kept`` says that the connection can serve another exchange. Whoever does not
    read a body to its end must abort.
    """

    def __init__(self, target: str) -> None:
        self.used = False
        self.silent = True
        self.kept = True
        self.status = 0
        self.headers: RawHeaders = []
        self.idle_since = 0.0
        self._target = target
        self._loop = asyncio.get_running_loop()
        self._timeouts = Timeouts()
        self._pieces: list[bytes] = []
        self._unread = 0
        self._head_bytes = 0
        self._paused = False
        self._ended = True
        self._fault: UpstreamError | None = None
        self._begun = False
        self._on_sent: Callable[[], None] | None = None
        self._held_up = False
        self._deadline = Deadline(self._loop)
        #: Offered what comes while somebody waits in ``piece``; what it takes wakes nobody.
        self.taker: Callable[[bytes], bool] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """The connection stands."""
        self._transport = transport
        transport.set_write_buffer_limits(0)  # so that we hear whether all of a request has left
        parser = self._parser = httptools.HttpResponseParser(self)
        parser.set_dangerous_leniencies(
            lenient_headers=True,
            lenient_optional_cr_before_lf=True,
            lenient_spaces_after_chunk_size=True,
        )

    async def send(
        self,
        request: bytes,
        timeouts: Timeouts,
        ends: float,
        on_sent: Callable[[], None] | None = None,
    ) -> None:
        """Send a request and wait for the head of its answer; all must end by the time ``ends``.

        ``on_sent`` is called when the system has taken the request to its last byte.
        Raises OutcomeUnknown when the connection closes without a whole head, UpstreamFailed for
        what is no HTTP, UpstreamTimeout.
        """
        self.silent, self._ended, self._begun = True, False, False
        self.status, self._fault, self._head_bytes = 0, None, 0
        self.headers = []
        self._timeouts = timeouts
        self._deadline.ends = ends
        if self._transport.is_closing():
            raise _no_answer(self._target)
        self._on_sent = on_sent
        self._transport.write(request)
        if not self._held_up:
            self._tell_sent()
        try:
            await self._deadline.wait(timeouts.first_byte)
        except TimeoutError:
            raise self._late("first byte") from None
        if not self.status and self._fault is not None:
            raise self._fault

    async def piece(self) -> bytes:
        """The next bytes of the body as they came. Raises StopAsyncIteration at its end.

        Raises UpstreamTimeout, and StreamInterrupted when the body breaks off.
        """
        if not (self._pieces or self._ended or self._fault):
            limits = self._timeouts
            try:
                await self._deadline.wait(limits.idle if self._begun else limits.first_byte)
            except TimeoutError:
                raise self._late("idle" if self._begun else "first byte") from None
        if not self._pieces:
            raise self._fault or StopAsyncIteration
        self._begun = True
        pieces = self._pieces
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        pieces.clear()
        self._unread = 0
        if self._paused:
            self._paused = False
            self._transport.resume_reading()
        return data

    @property
    def ended(self) -> bool:
        """Whether the answer was read to its end."""
        return self._ended and not self._pieces

    def abort(self) -> None:
        """Close at once; the target notices."""
        self.kept = False
        self._deadline.close()
        self._transport.abort()

    def pause_writing(self) -> None:
        """The system did not take all of the request."""
        self._held_up = True

    def resume_writing(self) -> None:
        """It has taken the rest."""
        self._held_up = False
        self._tell_sent()

    def drop(self) -> None:
        """Abort; how the exchange failed was told, and is not kept."""
        self._fault = None
        self.abort()

    def data_received(self, data: bytes) -> None:
        """Bytes of an answer. What comes unasked ends the connection."""
        self.silent = False
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._break(self._no_http())
            return
        if not self.status:
            self._head_bytes += len(data)
            if self._head_bytes > _LONGEST_HEAD:
                self._break(self._no_http())
            return
        if self._unread and self.taker is not None:
            self._offer(self.taker)
        if self._unread > _MOST_UNREAD and not self._paused and not self._ended:
            self._paused = True
            self._transport.pause_reading()

    def _offer(self, taker: Callable[[bytes], bool]) -> None:
        """Hand over what came at once, in place of waking the one who waits for it."""
        if self._ended or self._fault or not self._deadline.is_waiting:
            return
        pieces = self._pieces
        if taker(pieces[0] if len(pieces) == 1 else b"".join(pieces)):
            pieces.clear()
            self._unread = 0
            self._begun = True
            self._deadline.go_on(self._timeouts.idle)
        else:
            self._deadline.come()

    def connection_lost(self, exc: Exception | None) -> None:
        """The end. Of a body without a length it is the proper one."""
        self.kept = False
        if self._ended:
            self._deadline.close()
        elif not self.status:
            self._break(_no_answer(self._target))
        elif exc is None and not self._is_framed():
            self._ended = True
            self._deadline.come()
        else:
            self._break(self._broken_off())
        del self._parser  # it has this object, too: together they would be garbage to be collected

    def on_message_begin(self) -> None:
        """An answer begins. One that nobody asked for is not read."""
        if self._ended:
            raise ValueError("an answer without a request")

    def on_header(self, name: bytes, value: bytes) -> None:
        """A line of the head, or of the trailer, which is of no use."""
        if not self.status:
            self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """The head is whole; one of an interim answer does not count."""
        status = self._parser.get_status_code()
        if status < _FINAL:
            self.headers = []
            return
        self.status = status
        self._deadline.come()

    def on_body(self, body: bytes) -> None:
        """A piece of the body."""
        self._pieces.append(body)
        self._unread += len(body)
        if self.taker is None:
            self._deadline.come()

    def on_message_complete(self) -> None:
        """The answer is whole."""
        if not self.status or self._ended:
            return
        self._ended = self.used = True
        # A request that is still being sent would run into the next one.
        unsent = self._transport.get_write_buffer_size()
        self.kept = self.kept and self._parser.should_keep_alive() and not unsent
        self._deadline.come()

    def _tell_sent(self) -> None:
        on_sent, self._on_sent = self._on_sent, None
        if on_sent is not None:
            on_sent()

    def _is_framed(self) -> bool:
        return any(
            name == b"content-length"
            or (name == b"transfer-encoding" and b"chunked" in value.lower())
            for name, value in self.headers
        )

    def _break(self, fault: UpstreamError) -> None:
        if not self._ended and self._fault is None:
            self._fault = fault
        self._deadline.come()
        self.abort()

    def _late(self, phase: str) -> UpstreamError:
        limit = "total" if self._deadline.is_total else phase
        message = f"The target did not answer within its {limit} limit."
        return UpstreamTimeout(message, target=self._target)

    def _no_http(self) -> UpstreamError:
        if self.status:
            return self._broken_off()
        return UpstreamFailed("The target's answer is not valid HTTP.", target=self._target)

    def _broken_off(self) -> UpstreamError:
        error = ended_early(self._target)
        error.cut = True
        return error


def _no_answer(target: str) -> UpstreamError:
    return OutcomeUnknown("The target closed the connection without an answer.", target=target)
