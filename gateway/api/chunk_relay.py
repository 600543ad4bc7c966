"""The events of one upstream stream on their way to the client: bytes through, watched closely."""

from collections.abc import Sequence
from typing import Any

from gateway.api.chunk_template import ChunkTemplate
from gateway.api.relay import HEARTBEAT, ShortWay
from gateway.core.errors import UpstreamError
from gateway.core.exact_json import dumps
from gateway.core.large_json import LARGE
from gateway.core.usage import Usage
from gateway.metering.counter import StreamMeter
from gateway.metering.record import CallTiming
from gateway.providers.answers import choices_of, error_in
from gateway.providers.broken_answers import ended_early, endless_event, unreadable_event
from gateway.providers.failures import stream_failure
from gateway.providers.scrubber import Scrubber
from gateway.providers.sse import DONE, EventSplitter, parse_event
from gateway.schemas.requests import ModelRequest

_DONE_EVENT = b"data: [DONE]\n\n"
#: Azure's verdict on the prompt, which it sends before everything else, with empty choices.
_EARLY = "prompt_filter_results"


class ChunkRelay:
    """Takes pieces as they come from the target, gives back what the client shall see.

    Chunks pass as they are, except: a chunk that only holds the usage is kept back unless the
    client asked for it, an event in several data lines becomes one line, ``tier`` is put in when
    given, and Azure's remarks about the prompt and chunks without delta come in OpenAI's form.
    ``committed`` says that content has come, ``done`` that ``[DONE]`` has; ``unshown`` are the
    events that came in one piece with a failure, before it.
    """

    def __init__(
        self,
        target: str,
        request: ModelRequest,
        scrub: Scrubber,
        started: float,
        tier: str | None = None,
    ) -> None:
        self.committed = False
        self.done = False
        self.unshown = b""
        self._target = target
        self._request = request
        self._scrub = scrub
        self._tier = tier
        self._splitter = EventSplitter()
        self._template = ChunkTemplate()
        self._meter = StreamMeter(request.prompt_bytes, started)
        self._finished = 0
        self._begun = False
        self._early: dict[str, Any] = {}

    @property
    def complete(self) -> bool:
        """Whether the answer came to its proper end."""
        return self.done or self._finished >= self._request.choices

    @property
    def usage(self) -> Usage:
        """Tokens so far."""
        return self._meter.usage(complete=self.complete)

    @property
    def timing(self) -> CallTiming:
        """Time to the first content and the gaps so far."""
        return self._meter.timing

    @property
    def short_way(self) -> ShortWay:
        """For texts alone."""
        return self

    def is_large(self, piece: bytes) -> bool:
        """Whether what ``piece`` may complete is better taken beside the event loop."""
        return self._splitter.is_large(piece)

    def plain(self, piece: bytes) -> Sequence[int]:
        """Bytes of each text of a piece of nothing but texts in chunks as one before."""
        if self._splitter.pending or self.done or self._early or len(piece) > LARGE:
            return ()
        return self._template.sizes(piece)

    def passed(self, texts: Sequence[int], now: float) -> None:
        """Count texts that went on as they came."""
        self._meter.texts(texts, now)

    def take(self, piece: bytes, now: float) -> bytes:
        """What to pass on of ``piece``, complete events only.

        Raises the classified error for an error event, UpstreamFailed for one that is no chunk.
        """
        if texts := self.plain(piece):
            self.passed(texts, now)
            return piece
        frames = self._frames(piece, now)
        if not frames and piece.startswith(b":") and not self._splitter.pending:
            return HEARTBEAT
        return b"".join(frames)

    def _frames(self, piece: bytes, now: float) -> list[bytes]:
        frames: list[bytes] = []
        try:
            for data in self._splitter.feed(piece):
                if (kept := self._event(data, now)) is not None:
                    frames.append(b"data: %b\n\n" % kept)  # noqa: PERF401 - kept when one fails
        except ValueError:
            raise endless_event(self._target) from None
        except UpstreamError:
            self.unshown = b"".join(frames)
            raise
        return frames

    def end(self, now: float) -> bytes:
        """The rest when the body has ended. Raises StreamInterrupted when it ended too early."""
        frames = [
            b"data: %b\n\n" % kept
            for data in self._splitter.end()
            if (kept := self._event(data, now)) is not None
        ]
        if not self.complete:
            raise ended_early(self._target)
        if not self.done:
            self.done = True
            frames.append(_DONE_EVENT)
        return b"".join(frames)

    def _event(self, data: bytes, now: float) -> bytes | None:
        """The event's data as the client shall see it; None: not at all."""
        if data.startswith(b"{") and data.endswith(b"}") and b"\n" not in data:
            return self._chunk(data, now)
        if not self.done and data.strip() == DONE:
            if not self._begun:
                raise ended_early(self._target)
            self.done = True
            return DONE
        return self._chunk(self._in_one_line(data), now)

    def _chunk(self, data: bytes, now: float) -> bytes | None:
        if self.done:
            return None
        chunk, choices = self._read(data)
        if chunk.get("error") or not choices:
            self._refuse_error(chunk)
        self._begun = self._begun or bool(choices)
        if self._meter.feed(data, now):
            self.committed = True
        for choice in choices:
            if choice.get("finish_reason"):
                self._finished += 1
        if not choices and self._keeps_back(chunk):
            return None
        return self._shown(data, chunk, choices)

    def _read(self, data: bytes) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """The chunk and its choices, if it is one that a client can read."""
        try:
            chunk = parse_event(data)
            return chunk, choices_of(chunk)
        except ValueError as error:
            raise unreadable_event(data, self._target, error) from None

    def _shown(self, data: bytes, chunk: dict[str, Any], choices: list[dict[str, Any]]) -> bytes:
        if self._early or any(map(_lacks_delta, choices)):
            data = self._mended(chunk, choices)
        elif self.committed and self._tier is None:
            self._template.learn(data, chunk, choices)
        return data if self._tier is None else self._with_tier(data, chunk)

    def _refuse_error(self, chunk: dict[str, Any]) -> None:
        if error := error_in(chunk):
            raise stream_failure(self._target, error, self._scrub)

    def _keeps_back(self, chunk: dict[str, Any]) -> bool:
        """Whether a chunk without choices stays here: clients of OpenAI's API expect none."""
        if early := chunk.get(_EARLY):
            self._early[_EARLY] = early
            return True
        return not self._request.wants_usage and isinstance(chunk.get("usage"), dict)

    def _mended(self, chunk: dict[str, Any], choices: list[dict[str, Any]]) -> bytes:
        """A chunk as OpenAI's API has it: with a delta, and what was kept back goes along."""
        if choices:
            chunk.update(self._early)
            self._early.clear()
        for choice in choices:
            if _lacks_delta(choice):
                choice["delta"] = {}
        return dumps(chunk)

    def _in_one_line(self, data: bytes) -> bytes:
        if self.done:
            return data
        try:
            return dumps(parse_event(data))
        except ValueError as error:
            raise unreadable_event(data, self._target, error) from None

    def _with_tier(self, data: bytes, chunk: dict[str, Any]) -> bytes:
        if chunk.get("service_tier"):
            return data
        chunk["service_tier"] = self._tier
        return dumps(chunk)


def _lacks_delta(choice: dict[str, Any]) -> bool:
    return "delta" not in choice and "text" not in choice
