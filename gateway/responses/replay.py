"""The events of a response that runs elsewhere, told from what is known of it.

The same response gives the same events with the same numbers, so a reader that lost its connection
goes on after the last number it saw.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from gateway.responses.events import TEXT_OF, Numbered, text_events

Json = dict[str, Any]


class Replay:
    """Tells each event once: ``waiting`` at once, ``running`` once it runs, ``ended`` at the end.

    Each may be called without those before it.
    """

    def __init__(self) -> None:
        self._number = Numbered()
        self._told = 0

    def waiting(self, response: Mapping[str, Any]) -> list[Json]:
        """That it was accepted and waits."""
        if self._told:
            return []
        self._told = 1
        queued = {**response, "status": "queued", "output": [], "usage": None}
        queued |= {"error": None, "incomplete_details": None, "completed_at": None}
        return [
            self._number("response.created", response=queued),
            self._number("response.queued", response=queued),
        ]

    def running(self, response: Mapping[str, Any]) -> list[Json]:
        """That it runs."""
        events = self.waiting(response)
        if self._told == 1:
            self._told = 2
            begun = {**response, "status": "in_progress", "output": [], "usage": None}
            begun |= {"error": None, "incomplete_details": None, "completed_at": None}
            events.append(self._number("response.in_progress", response=begun))
        return events

    def ended(self, response: Mapping[str, Any]) -> list[Json]:
        """Its output and its end; a cancelled one has no event of its own and ends as failed."""
        events = self.running(response)
        for index, item in enumerate(response["output"]):
            events += self._item(index, item)
        status = "failed" if response["status"] == "cancelled" else response["status"]
        events.append(self._number(f"response.{status}", response=dict(response)))
        return events

    def _item(self, index: int, item: Mapping[str, Any]) -> Iterator[Json]:
        place = {"output_index": index}
        call = item.get("type") == "function_call"
        parts = item.get("content")
        parts = parts if isinstance(parts, list) else None
        empty = {**item, "status": "in_progress"}
        if call:
            empty["arguments"] = ""
        elif parts is not None:
            empty["content"] = []
        yield self._number("response.output_item.added", **place, item=empty)
        known = {**place, "item_id": item.get("id", "")}
        if call:
            arguments, name = item.get("arguments", ""), item.get("name", "")
            stem = "response.function_call_arguments"
            yield self._number(f"{stem}.delta", **known, delta=arguments)
            yield self._number(f"{stem}.done", **known, name=name, arguments=arguments)
        for at, part in enumerate(parts or ()):
            if isinstance(part, dict):
                yield from self._part({**known, "content_index": at}, part)
        yield self._number("response.output_item.done", **place, item=dict(item))

    def _part(self, place: Json, part: Mapping[str, Any]) -> Iterator[Json]:
        kind = part.get("type")
        name = TEXT_OF.get(kind) if isinstance(kind, str) else None
        if not isinstance(kind, str) or name is None:
            return  # it is told with its item alone
        text = part.get(name, "")
        delta, done = text_events(kind)
        more = {"logprobs": part.get("logprobs") or []} if kind == "output_text" else {}
        bare = {key: [] if key in {"annotations", "logprobs"} else part[key] for key in part}
        yield self._number("response.content_part.added", **place, part={**bare, name: ""})
        yield self._number(delta, **place, delta=text, **more)
        yield self._number(done, **place, **{name: text}, **more)
        yield self._number("response.content_part.done", **place, part=dict(part))
