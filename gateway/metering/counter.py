"""Tokens of an answer: those the target reports, else an estimate that says it is one."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from gateway.core.exact_json import dumps, loads
from gateway.core.usage import ReportedUsage, Usage, reported_in
from gateway.metering.record import CallTiming
from gateway.metering.timing import TokenTiming

_BYTES_PER_TOKEN = 4
_ONE_TOKEN_BYTES = 16
# Quotes inside a JSON string are escaped, so a member name between bare quotes is a member name.
_CONTENT = re.compile(
    rb'"(?:content|text|reasoning_content|reasoning|refusal|arguments|name)"\s*:\s*"(?=[^"])'
)
# What was matched is never given up again: one pass over a long text, and no memory for it.
_ESCAPED = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+(?=")')
_PLAIN_CONTENT = b'"content":"'
_BACKSLASH = 0x5C
_USAGE = re.compile(rb'"usage"\s*:\s*\{')
_WITH_TEXT = frozenset({"choices", "output"})


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
        self._reported: ReportedUsage | None = None
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

        A report is taken as it is, zeros too. What it does not tell is estimated: the prompt from
        its length, the completion is the number of content events (long ones count by length). Of
        an incomplete stream the larger of the report so far and the count is taken.
        """
        prompt = estimate_tokens(self._prompt_bytes)
        if self._reported is None:
            return Usage(prompt, self._counted, estimated=True)
        seen = self._reported.completed(prompt, self._counted)
        if complete or self._counted <= seen.completion:
            return seen
        prompt = seen.prompt or prompt
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
    return 0 if match is None else _text_bytes(event, match.end())


def _text_bytes(json: bytes, start: int) -> int:
    """Length of the text that begins at ``start``, 0 if it has no end. A byte is soon found."""
    end = json.find(b'"', start)
    if end > start and json[end - 1] == _BACKSLASH:
        match = _ESCAPED.match(json, start)
        end = -1 if match is None else match.end()
    return max(0, end - start)


def reported_usage(event: bytes) -> ReportedUsage | None:
    """The usage that an event or a whole answer reports; None when it reports none."""
    start = event.find(b"{")
    try:
        body = loads(event[start:] if start else event)
    except ValueError:
        return None
    return reported_in(body) if isinstance(body, dict) else None


def answer_usage(body: Mapping[str, Any], prompt_bytes: int) -> Usage:
    """Usage of a whole (not streamed) answer; what it does not report is estimated."""
    return completed_usage(reported_in(body), body, prompt_bytes)


def completed_usage(
    reported: ReportedUsage | None, body: Mapping[str, Any], prompt_bytes: int
) -> Usage:
    """Usage of an answer of which this much was reported; the rest is estimated from its text."""
    if reported and reported.prompt is not None and reported.completion is not None:
        return reported.completed(0, 0)
    text = 0
    if not _WITH_TEXT.isdisjoint(body):
        json = dumps(body)
        text = sum(_text_bytes(json, match.end()) for match in _CONTENT.finditer(json))
    prompt, completion = estimate_tokens(prompt_bytes), estimate_tokens(text)
    if reported is None:
        return Usage(prompt, completion, estimated=True)
    return reported.completed(prompt, completion)
