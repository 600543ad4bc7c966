"""A response, put together from the chunks of a chat completion, and the events that tell of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gateway.core.ids import new_id
from gateway.core.usage import Usage
from gateway.responses.events import TEXT_OF, Numbered, text_events
from gateway.responses.logprobs import in_delta, in_part

Json = dict[str, Any]
_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}
#: What chunks with members of other types than the API's come to.
MALFORMED = (AttributeError, KeyError, TypeError, ValueError)


@dataclass
class _Part:
    """A part that grows: the last one of the last item."""

    kind: str
    item: Json
    output_index: int
    part: Json
    pieces: list[str] = field(default_factory=list)

    @property
    def place(self) -> Json:
        return {
            "item_id": self.item["id"],
            "output_index": self.output_index,
            "content_index": len(self.item["content"]) - 1,
        }


@dataclass
class _Call:
    """A tool call that grows."""

    item: Json
    output_index: int
    pieces: list[str] = field(default_factory=list)


class ResponseBuilder:
    """Feeds on chunks, gives back events. ``response`` is the response so far.

    Chunks with members of other types than the API's raise one of MALFORMED.
    """

    def __init__(self, response: Json) -> None:
        self.response = {**response, "output": []}
        self.number = Numbered()
        self._output: list[Json] = self.response["output"]
        self._part: _Part | None = None
        self._calls: dict[int, _Call] = {}
        self._finish: str | None = None

    def start(self) -> list[Json]:
        """The events before any output."""
        self.response["status"] = "in_progress"
        return [
            self.number("response.created", response=self._now()),
            self.number("response.in_progress", response=self._now()),
        ]

    def feed(self, chunk: Mapping[str, Any]) -> list[Json]:
        """Take in one chunk."""
        if chunk.get("model"):
            self.response["model"] = str(chunk["model"])
        if isinstance(chunk.get("usage"), dict):
            self.response["usage"] = Usage.from_openai(chunk["usage"]).to_responses()
        events: list[Json] = []
        for choice in chunk.get("choices") or ():
            if not choice.get("index"):
                events += self._choice(choice)
        return events

    def finish(self, now: int) -> list[Json]:
        """The events that end the response; ``now`` in Unix seconds."""
        reason = _INCOMPLETE.get(self._finish or "")
        status = "incomplete" if reason else "completed"
        events = self._close_part(status)
        for call in self._calls.values():
            events += self._close_call(call, status)
        self.response["status"] = status
        if reason:
            self.response["incomplete_details"] = {"reason": reason}
        else:
            self.response["completed_at"] = now
        return [*events, self.number(f"response.{status}", response=self._now())]

    def _choice(self, choice: Mapping[str, Any]) -> list[Json]:
        delta = choice.get("delta") or {}
        events: list[Json] = []
        thought = delta.get("reasoning_content") or delta.get("reasoning")
        if isinstance(thought, str):
            events += self._text("reasoning_text", thought, None)
        if delta.get("content"):
            events += self._text("output_text", delta["content"], choice.get("logprobs"))
        if delta.get("refusal"):
            events += self._text("refusal", delta["refusal"], None)
        for call in delta.get("tool_calls") or ():
            events += self._tool_call(call)
        self._finish = choice.get("finish_reason") or self._finish
        return events

    def _text(self, kind: str, text: str, logprobs: Mapping[str, Any] | None) -> list[Json]:
        if not isinstance(text, str):
            raise TypeError("a text is no string")
        events: list[Json] = []
        part = self._part
        if part is None or part.kind != kind:
            part, events = self._open_part(kind)
        part.pieces.append(text)
        more: Json = {}
        if kind == "output_text":
            found = (logprobs or {}).get("content") or []
            more["logprobs"] = [in_delta(entry) for entry in found]
            part.part["logprobs"] += [in_part(entry) for entry in found]
        events.append(self.number(text_events(kind)[0], **part.place, delta=text, **more))
        return events

    def _open_part(self, kind: str) -> tuple[_Part, list[Json]]:
        before = self._part
        item_kind = "reasoning" if kind == "reasoning_text" else "message"
        events: list[Json] = []
        if before is not None and before.item["type"] == item_kind:
            events += self._end_text(before)
            item, index = before.item, before.output_index
        else:
            events += self._close_part("completed")
            item, index = self._new_item(item_kind)
            events.append(
                self.number("response.output_item.added", output_index=index, item=_copy(item))
            )
        body: Json = {"type": kind, TEXT_OF[kind]: ""}
        if kind == "output_text":
            body |= {"annotations": [], "logprobs": []}
        item["content"].append(body)
        part = self._part = _Part(kind, item, index, body)
        events.append(self.number("response.content_part.added", **part.place, part=_copy(body)))
        return part, events

    def _new_item(self, kind: str) -> tuple[Json, int]:
        item: Json = {"id": new_id("rs" if kind == "reasoning" else "msg"), "type": kind}
        if kind == "message":
            item["role"] = "assistant"
        else:
            item["summary"] = []
        item |= {"status": "in_progress", "content": []}
        self._output.append(item)
        return item, len(self._output) - 1

    def _end_text(self, part: _Part) -> list[Json]:
        name = TEXT_OF[part.kind]
        text = part.part[name] = "".join(part.pieces)
        more = {"logprobs": part.part["logprobs"]} if part.kind == "output_text" else {}
        told = {name: text}
        return [
            self.number(text_events(part.kind)[1], **part.place, **told, **more),
            self.number("response.content_part.done", **part.place, part=_copy(part.part)),
        ]

    def _close_part(self, status: str) -> list[Json]:
        part, self._part = self._part, None
        if part is None:
            return []
        part.item["status"] = status
        return [
            *self._end_text(part),
            self.number(
                "response.output_item.done", output_index=part.output_index, item=_copy(part.item)
            ),
        ]

    def _tool_call(self, delta: Mapping[str, Any]) -> list[Json]:
        number = int(delta.get("index") or 0)
        function = delta.get("function") or {}
        events: list[Json] = []
        call = self._calls.get(number)
        if call is None:
            events += self._close_part("completed")
            call = self._calls[number] = self._new_call(delta, function)
            events.append(
                self.number(
                    "response.output_item.added",
                    output_index=call.output_index,
                    item=_copy(call.item),
                )
            )
        elif function.get("name") and not call.item["name"]:
            call.item["name"] = str(function["name"])
        arguments = function.get("arguments")
        if arguments:
            call.pieces.append(arguments)
            events.append(
                self.number(
                    "response.function_call_arguments.delta",
                    item_id=call.item["id"],
                    output_index=call.output_index,
                    delta=arguments,
                )
            )
        return events

    def _new_call(self, delta: Mapping[str, Any], function: Mapping[str, Any]) -> _Call:
        item = {
            "id": new_id("fc"),
            "type": "function_call",
            "status": "in_progress",
            "call_id": str(delta.get("id") or new_id("call")),
            "name": str(function.get("name") or ""),
            "arguments": "",
        }
        self._output.append(item)
        return _Call(item, len(self._output) - 1)

    def _close_call(self, call: _Call, status: str) -> list[Json]:
        item = call.item
        item["arguments"] = "".join(call.pieces)
        item["status"] = status
        place = {"output_index": call.output_index}
        return [
            self.number(
                "response.function_call_arguments.done",
                item_id=item["id"],
                **place,
                name=item["name"],
                arguments=item["arguments"],
            ),
            self.number("response.output_item.done", **place, item=_copy(item)),
        ]

    def _now(self) -> Json:
        return {**self.response, "output": [_copy(item) for item in self._output]}


def whole_response(response: Json, answer: Mapping[str, Any], now: int) -> Json:
    """The response that a whole chat answer comes to. Raises as feeding the builder does."""
    builder = ResponseBuilder(response)
    choices = [
        {**choice, "delta": _delta(choice.get("message") or {})}
        for choice in answer.get("choices") or ()
    ]
    builder.feed({**answer, "choices": choices})
    builder.finish(now)
    return builder.response


def _delta(message: Mapping[str, Any]) -> Json:
    """A message as one delta: its calls have no numbers yet."""
    calls = [{**call, "index": at} for at, call in enumerate(message.get("tool_calls") or ())]
    return {**message, "tool_calls": calls}


def _copy(item: Json) -> Json:
    """What is told now must not grow later."""
    return {k: list(v) if isinstance(v, list) else v for k, v in item.items()}
