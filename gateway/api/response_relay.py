"""Streams of targets as streams of the Responses API.

One relay reads chat completions, the other one the events of a target that has the endpoint.
"""

from abc import ABC, abstractmethod
from typing import Any

from gateway.api.relay import HEARTBEAT
from gateway.core.clock import Clock
from gateway.core.errors import UpstreamError
from gateway.core.exact_json import dumps
from gateway.core.usage import Usage
from gateway.metering.counter import StreamMeter
from gateway.metering.record import CallTiming
from gateway.providers.answers import choices_of, error_in
from gateway.providers.broken_answers import (
    ended_early,
    endless_event,
    malformed_stream,
    unreadable_event,
)
from gateway.providers.failures import stream_failure
from gateway.providers.scrubber import Scrubber
from gateway.providers.sse import DONE, EventSplitter, parse_event
from gateway.responses.builder import MALFORMED, ResponseBuilder
from gateway.responses.events import FINAL, Numbered, encoded
from gateway.responses.native import NativeEvents, content_in

Json = dict[str, Any]


class ResponseRelay(ABC):
    """What both have in common; as ``Relay`` promises.

    ``response`` is the response so far, ``failed`` says that the target itself ended it so.
    """

    #: Each event has a number of ours.
    short_way = None

    def __init__(self, target: str, scrub: Scrubber, meter: StreamMeter) -> None:
        self.committed = False
        self.done = False
        self.failed = False
        self.unshown = b""
        self._target = target
        self._scrub = scrub
        self._meter = meter
        self._splitter = EventSplitter()

    @property
    @abstractmethod
    def response(self) -> Json:
        """The response so far."""

    @property
    @abstractmethod
    def number(self) -> Numbered:
        """Counts the events."""

    @property
    def usage(self) -> Usage:
        """Tokens so far."""
        return self._meter.usage(complete=self.done)

    @property
    def timing(self) -> CallTiming:
        """Time to the first content and the gaps so far."""
        return self._meter.timing

    def is_large(self, piece: bytes) -> bool:
        """Whether what ``piece`` may complete is better taken beside the event loop."""
        return self._splitter.is_large(piece)

    def take(self, piece: bytes, now: float) -> bytes:
        """What to pass on of ``piece``, complete events only. Raises UpstreamError."""
        shown: list[bytes] = []
        try:
            for data in self._splitter.feed(piece):
                if not self.done:
                    shown.append(self._event(data, now))  # noqa: PERF401 - kept when one fails
        except ValueError:
            raise endless_event(self._target) from None
        except UpstreamError:
            self.unshown = b"".join(shown)
            raise
        if not shown and piece.startswith(b":") and not self._splitter.pending:
            return HEARTBEAT
        return b"".join(shown)

    def end(self, now: float) -> bytes:
        """The rest when the body has ended. Raises StreamInterrupted when it ended too early."""
        shown = [self._event(data, now) for data in self._splitter.end() if not self.done]
        if not self.done:
            shown.append(self._last())
        return b"".join(shown)

    def _event(self, data: bytes, now: float) -> bytes:
        try:
            event = DONE if data.strip() == DONE else parse_event(data)
            if isinstance(event, dict) and (error := error_in(event)):
                raise stream_failure(self._target, error, self._scrub)
            return self._shown(event, data, now)
        except MALFORMED as error:
            raise unreadable_event(data, self._target, error) from None

    @abstractmethod
    def _shown(self, event: Any, data: bytes, now: float) -> bytes: ...

    def _last(self) -> bytes:
        raise ended_early(self._target)


class ChatRelay(ResponseRelay):
    """Chat completion chunks in, events of a response out."""

    def __init__(
        self, target: str, scrub: Scrubber, meter: StreamMeter, response: Json, clock: Clock
    ) -> None:
        super().__init__(target, scrub, meter)
        self._builder = ResponseBuilder(response)
        self._clock = clock
        self._begun = False
        self._finished = False

    @property
    def response(self) -> Json:
        """The response so far."""
        return self._builder.response

    @property
    def number(self) -> Numbered:
        """Counts the events."""
        return self._builder.number

    def _shown(self, event: Any, data: bytes, now: float) -> bytes:
        if event == DONE:
            return self._ended()
        choices = choices_of(event)
        events = [] if self._begun else self._builder.start()
        self._begun = True
        if self._meter.feed(data, now):
            self.committed = True
        self._finished = self._finished or any(c.get("finish_reason") for c in choices)
        return encoded([*events, *self._builder.feed(event)])

    def _last(self) -> bytes:
        return self._ended() if self._finished else super()._last()

    def _ended(self) -> bytes:
        """The target has said that this is all: by a reason to stop, or by ``[DONE]``."""
        if not self._begun:
            return super()._last()
        self.done = True
        return encoded(self._builder.finish(int(self._clock.now())))


class NativeRelay(ResponseRelay):
    """The events of the target's own Responses API."""

    def __init__(self, target: str, scrub: Scrubber, meter: StreamMeter, response: Json) -> None:
        super().__init__(target, scrub, meter)
        self._events = NativeEvents(response)

    @property
    def response(self) -> Json:
        """The response so far."""
        return self._events.response

    @property
    def number(self) -> Numbered:
        """Counts the events."""
        return self._events.number

    def _shown(self, event: Any, data: bytes, now: float) -> bytes:
        if event == DONE:
            return self._last()
        if not isinstance(event, dict):
            raise malformed_stream(self._target)
        kind = event.get("type")
        if kind == "error":
            raise stream_failure(self._target, event, self._scrub)
        if kind == "response.failed":
            self.failed = True
            error = event["response"].get("error")
            raise stream_failure(self._target, error, self._scrub)
        if kind in FINAL:
            self._meter.feed(data, now)
            self.done = True
        else:
            text = content_in(event)
            if text and self._meter.feed(dumps({"content": text}), now):
                self.committed = True
        return encoded([self._events.rewritten(event)])
