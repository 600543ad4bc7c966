"""Tokens of an answer: those the target reports, else an estimate that says it is one."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from gateway.core.usage import Usage, usage_member
from gateway.metering.record import CallTiming
from gateway.metering.timing import TokenTiming

_BYTES_PER_TOKEN = 4
_ONE_TOKEN_BYTES = 16
# Quotes inside a JSON string are escaped, so a member name between bare quotes is a member name.
_CONTENT = re.compile(
    rb'"(?:content|text|reasoning_content|reasoning|refusal|arguments|name)"\s*:\s*'
    rb'"((?:[^"\\]|\\.)+)"'
)
_PLAIN_CONTENT = b'"content":"'
_BACKSLASH = 0x5C
_USAGE = re.compile(rb'"usage"\s*:\s*\{')
_FIGURES = frozenset(
    {"prompt_tokens", "completion_tokens", "input_tokens", "output_tokens", "total_tokens"}
)


def estimate_tokens(text_bytes: int) -> int:
    """Tokens of a text of this many bytes: a quarter, at least 1 unless there is none."""
    return -(-text_bytes // _BYTES_PER_TOKEN)


class StreamMeter:
    """Counts one streamed answer and times its content.

    ``prompt_bytes`` is the length of the prompt, ``started`` the monotonic second at which the
    call was made.
    """

    __slots__ = ("_counted", "_prompt_bytes", "_reported", "_timing")

    def __init__(self, prompt_bytes: int, started: float) -> None:
        self._prompt_bytes = prompt_bytes
        self._reported: Usage | None = None
        self._counted = 0
        self._timing = TokenTiming(started)

    def feed(self, event: bytes, now: float) -> bool:
        """Take one event: its data, or the whole event with ``data:``. True: it has content.

        Content is text, a tool call, a refusal or reasoning; a role, a comment, an empty delta
        and ``[DONE]`` are none.
        """
        if b'"usage":' in event and b'"usage":null' not in event and _USAGE.search(event):
            self._reported = reported_usage(event) or self._reported
        size = _content_bytes(event)
        if size:
            self.texts((size,), now)
        return size > 0

    def texts(self, sizes: Sequence[int], now: float) -> None:
        """Take events that came together: each so many bytes of content, and no usage."""
        for size in sizes:
            self._counted += 1 if size <= _ONE_TOKEN_BYTES else estimate_tokens(size)
        self._timing.content(now, len(sizes))

    @property
    def timing(self) -> CallTiming:
        """Time to first content and the gaps so far."""
        return self._timing.summary()

    def usage(self, *, complete: bool = True) -> Usage:
        """What the answer used. ``complete`` says that the stream came to its proper end.

        A report is taken as it is, zeros too. Without one the prompt is estimated from its
        length and the completion is the number of content events (long ones count by length). Of
        an incomplete stream the larger of the report so far and the count is taken.
        """
        if self._reported is None:
            prompt = estimate_tokens(self._prompt_bytes)
            return Usage(prompt, self._counted, estimated=True)
        if complete or self._counted <= self._reported.completion:
            return self._reported
        seen = self._reported
        prompt = seen.prompt or estimate_tokens(self._prompt_bytes)
        return Usage(prompt, self._counted, seen.cached, seen.reasoning, estimated=True)


def _content_bytes(event: bytes) -> int:
    """Length of the first content in an event, 0 if there is none."""
    # Nearly every event is this one: a short text, written without spaces and escapes.
    start = event.find(_PLAIN_CONTENT) + len(_PLAIN_CONTENT)
    if start >= len(_PLAIN_CONTENT):
        end = event.find(b'"', start)
        if end > start and event[end - 1] != _BACKSLASH:
            return end - start
    match = _CONTENT.search(event)
    return 0 if match is None else match.end(1) - match.start(1)


def reported_usage(event: bytes) -> Usage | None:
    """The usage that an event or a whole answer reports; None when it reports none."""
    start = event.find(b"{")
    try:
        body = orjson.loads(event[start:])
    except orjson.JSONDecodeError:
        return None
    return _usage_member(body)


def answer_usage(body: Mapping[str, Any], prompt_bytes: int) -> Usage:
    """Usage of a whole (not streamed) answer; estimated from its text when it reports none."""
    usage = _usage_member(body)
    if usage is not None:
        return usage
    text = sum(len(match[1]) for match in _CONTENT.finditer(orjson.dumps(body)))
    return Usage(estimate_tokens(prompt_bytes), estimate_tokens(text), estimated=True)


def _usage_member(body: object) -> Usage | None:
    if not isinstance(body, dict | Mapping):  # a dict is told from others at once
        return None
    usage = usage_member(body)
    if usage is None or _FIGURES.isdisjoint(usage):
        return None
    return Usage.from_openai(usage)
