"""A chat or completions event stream, put together to the answer that a plain call would get."""

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gateway.core.usage import ReportedUsage, usage_member
from gateway.providers.answers import choices_of, error_in, has_content
from gateway.providers.broken_answers import ended_early, malformed_stream, unreadable_event
from gateway.providers.failures import stream_failure
from gateway.providers.scrubber import Scrubber
from gateway.providers.sse import DONE, parse_event

_JOINED_TEXTS = frozenset({"content", "refusal", "reasoning", "reasoning_content", "arguments"})
_CHOICE = frozenset({"index", "delta", "text", "logprobs", "finish_reason"})
#: What members of other types than the API's come to when they are put together.
_MALFORMED = (AttributeError, TypeError, ValueError)


@dataclass(frozen=True, slots=True)
class Aggregated:
    """The plain answer, and its usage as far as the target told it."""

    body: dict[str, Any]
    usage: ReportedUsage | None


@dataclass(slots=True)
class _Choice:
    """One choice as far as it has come."""

    index: int
    text: list[str] = field(default_factory=list)
    message: dict[str, Any] = field(default_factory=dict)
    logprobs: dict[str, Any] | None = None
    finish: Any = None
    extra: dict[str, Any] = field(default_factory=dict)


async def aggregate(
    events: AsyncIterator[bytes],
    target: str,
    scrub: Scrubber,
    on_first_token: Callable[[], None] | None = None,
    on_token: Callable[[], None] | None = None,
) -> Aggregated:
    """Read the stream to its end; ``events`` are the data of its events.

    ``on_first_token`` is called once, at the first delta that carries content, ``on_token`` at each
    further one. Raises
    StreamInterrupted when the stream ends without a finish reason for each choice and without
    ``[DONE]``, the classified error for an error event, UpstreamFailed for anything else.
    """
    answer = _Answer()
    done = False
    async for data in events:
        if data.strip() == DONE:
            done = True
            break
        chunk = _chunk(data, target)
        if error := error_in(chunk):
            raise stream_failure(target, error, scrub)
        try:
            answer.add(chunk)
        except _MALFORMED:
            raise malformed_stream(target) from None
        if on_first_token is not None and has_content(chunk):
            on_first_token()
            on_first_token = on_token
    if not answer.choices or not (done or answer.finished):
        raise ended_early(target)
    try:
        return Aggregated(answer.body(), answer.usage)
    except _MALFORMED:
        raise malformed_stream(target) from None


def _chunk(data: bytes, target: str) -> dict[str, Any]:
    try:
        chunk = parse_event(data)
    except ValueError as error:
        raise unreadable_event(data, target, error) from None
    if not isinstance(chunk, dict):
        raise malformed_stream(target)
    return chunk


class _Answer:
    def __init__(self) -> None:
        self.choices: dict[int, _Choice] = {}
        self._head: dict[str, Any] = {}
        self._known = {"choices", "usage"}
        self._usage_object: Mapping[str, Any] | None = None

    @property
    def usage(self) -> ReportedUsage | None:
        return None if self._usage_object is None else ReportedUsage.of(self._usage_object)

    @property
    def finished(self) -> bool:
        return all(choice.finish for choice in self.choices.values())

    def add(self, chunk: dict[str, Any]) -> None:
        """Take in one chunk."""
        if not chunk.keys() <= self._known:
            self._add_head(chunk)
        usage = usage_member(chunk)
        if usage is not None:
            self._usage_object = usage
        for part in choices_of(chunk):
            self._add_choice(part)

    def _add_head(self, chunk: dict[str, Any]) -> None:
        """What is no choice: the first value that says something stays."""
        for name, value in chunk.items():
            if name not in self._known and value is not None:
                self._head[name] = value
                if value:
                    self._known.add(name)

    def _add_choice(self, part: dict[str, Any]) -> None:
        index = int(part.get("index") or 0)
        choice = self.choices.get(index)
        if choice is None:
            choice = self.choices[index] = _Choice(index)
        choice.finish = part.get("finish_reason") or choice.finish
        if isinstance(delta := part.get("delta"), dict):
            _merge(choice.message, delta)
        elif part.get("text"):
            choice.text.append(part["text"])
        if isinstance(part.get("logprobs"), dict):
            choice.logprobs = _joined_logprobs(choice.logprobs, part["logprobs"])
        if not part.keys() <= _CHOICE:
            for name, value in part.items():
                if name not in _CHOICE and value:
                    choice.extra[name] = value

    def body(self) -> dict[str, Any]:
        kind = self._head.get("object")
        chat = kind != "text_completion"
        choices = [_whole(self.choices[i], chat=chat) for i in sorted(self.choices)]
        usage = {} if self._usage_object is None else {"usage": self._usage_object}
        return {
            **self._head,
            "object": "chat.completion" if chat else kind,
            "choices": choices,
            **usage,
        }


def _whole(choice: _Choice, *, chat: bool) -> dict[str, Any]:
    if chat:
        content: dict[str, Any] = {"message": _message(choice.message)}
    else:
        content = {"text": "".join(choice.text)}
    return {
        "index": choice.index,
        **content,
        "logprobs": choice.logprobs,
        "finish_reason": choice.finish,
        **choice.extra,
    }


def _message(merged: dict[str, Any]) -> dict[str, Any]:
    message = {"role": "assistant", "content": None, "refusal": None, **merged}
    calls = message.get("tool_calls")
    if calls:
        message["tool_calls"] = [
            {name: value for name, value in call.items() if name != "index"} for call in calls
        ]
        message["content"] = message["content"] or None
    elif message["content"] is None and not message["refusal"]:
        message["content"] = ""
    return message


def _merge(into: dict[str, Any], delta: dict[str, Any]) -> None:
    """Join a delta to what came before: texts grow, tool calls by index, the rest is replaced."""
    for name, value in delta.items():
        if value is None:
            continue
        if name == "tool_calls" and isinstance(value, list):
            _merge_calls(into.setdefault(name, []), value)
        elif isinstance(value, dict):
            _merge(into.setdefault(name, {}), value)
        elif name in _JOINED_TEXTS and isinstance(value, str):
            into[name] = (into.get(name) or "") + value
        else:
            into[name] = value


def _merge_calls(calls: list[dict[str, Any]], parts: list[dict[str, Any]]) -> None:
    for part in parts:
        index = part.get("index", len(calls))
        found = next((call for call in calls if call.get("index") == index), None)
        if found is None:
            found = {"index": index}
            calls.append(found)
        _merge(found, part)


def _joined_logprobs(before: dict[str, Any] | None, part: dict[str, Any]) -> dict[str, Any]:
    joined = dict(before or {})
    for name, value in part.items():
        old = joined.get(name)
        joined[name] = (
            [*old, *value]
            if isinstance(old, list) and isinstance(value, list)
            else (value if old is None else old)
        )
    return joined
