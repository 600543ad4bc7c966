"""The events of a streamed answer."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

import orjson

from gateway.worker.answers import Answer, Choice
from gateway.worker.requests import Generation
from gateway.worker.sequence import Event

DONE = b"data: [DONE]\n\n"


class Transcript:
    """Turns groups of engine events into stream events, and remembers what was said."""

    def __init__(self, answer: Answer, generation: Generation) -> None:
        self._answer = answer
        self._generation = generation
        self._writer = ChunkWriter(answer, include_usage=generation.include_usage)
        count = len(generation.prompts) * generation.n
        self.choices = [Choice() for _ in range(count)]

    def add(self, group: Iterable[Event]) -> bytes:
        """What a group adds: one event for the text of each choice, one for its end."""
        ordered = sorted(group, key=_place)
        return b"".join(
            piece
            for place, events in groupby(ordered, _place)
            for piece in self._choice(place, list(events))
        )

    def end(self, usage: dict[str, Any]) -> bytes:
        """What follows the last choice's end."""
        return (self._writer.closing(usage) if self._generation.include_usage else b"") + DONE

    def _choice(self, place: int, events: list[Event]) -> Iterator[bytes]:
        choice = self.choices[place]
        if not choice.tokens:
            yield self._writer.opening(place)
            if self._generation.echo:
                yield self._writer.text(place, self._generation.texts[place // self._generation.n])
        said, listed = len(choice.text), len(choice.logprobs)
        for event in events:
            choice.add(event)
        logprobs = self._answer.logprobs(choice.logprobs[listed:], choice.offsets[listed:])
        yield self._writer.text(place, choice.text[said:], logprobs)
        if choice.finish_reason is not None:
            yield self._writer.ending(place, choice.finish_reason)


class ChunkWriter:
    """Writes the events of one stream. What they share is encoded once: tokens are many."""

    def __init__(self, answer: Answer, *, include_usage: bool) -> None:
        self._answer = answer
        head = orjson.dumps(answer.chunk_head)[:-1]
        usage = b',"usage":null' if include_usage else b""
        self._head = head
        self._start = b"data: " + head + b',"choices":[{"index":'
        self._end = b"}]" + usage + b"}\n\n"
        self._open, self._close = (
            (b',"delta":{"content":', b"}") if answer.chat else (b',"text":', b"")
        )

    def opening(self, index: int) -> bytes:
        """The first event of a chat choice: the role. Nothing for completions."""
        if not self._answer.chat:
            return b""
        delta = b',"delta":{"role":"assistant","content":""}'
        return self._event(index, delta, b"null", b"null")

    def text(self, index: int, text: str, logprobs: dict[str, Any] | None = None) -> bytes:
        """A piece of text; nothing when there is none."""
        if not text and logprobs is None:
            return b""
        delta = self._open + orjson.dumps(text) + self._close
        return self._event(index, delta, orjson.dumps(logprobs), b"null")

    def ending(self, index: int, reason: str) -> bytes:
        """The last event of a choice."""
        delta = b',"delta":{}' if self._answer.chat else b',"text":""'
        return self._event(index, delta, b"null", orjson.dumps(reason))

    def closing(self, usage: dict[str, Any]) -> bytes:
        """The event that carries the usage."""
        return b"data: " + self._head + b',"choices":[],"usage":' + orjson.dumps(usage) + b"}\n\n"

    def _event(self, index: int, delta: bytes, logprobs: bytes, reason: bytes) -> bytes:
        return b'%b%d%b,"logprobs":%b,"finish_reason":%b%b' % (
            self._start,
            index,
            delta,
            logprobs,
            reason,
            self._end,
        )


def _place(event: Event) -> int:
    return event.sequence.place
