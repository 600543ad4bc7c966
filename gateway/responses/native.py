"""A stream of a target that has the endpoint itself: its events with our numbers and our id."""

from collections.abc import Mapping
from typing import Any

from gateway.responses.events import ENDED, FINAL, Numbered
from gateway.responses.shape import owned

Json = dict[str, Any]


class NativeEvents:
    """Renames and renumbers. ``response`` is what the last event told of the response.

    Raises ValueError for what is no event of this API.
    """

    def __init__(self, response: Json) -> None:
        self.response = response
        self.number = Numbered()
        self._ours = response

    def rewritten(self, event: Mapping[str, Any]) -> Json:
        """The event as the client shall see it."""
        kind = event.get("type")
        if not isinstance(kind, str) or not kind.startswith("response."):
            raise ValueError("not an event of a response")
        members = {k: v for k, v in event.items() if k not in {"type", "sequence_number"}}
        theirs = members.get("response")
        if isinstance(theirs, dict):
            self.response = owned(theirs, self._ours)
            if kind in FINAL:
                self.response["status"] = kind.partition(".")[2]
            members["response"] = self.response
        elif kind in FINAL:
            raise ValueError("an end without a response")
        return self.number(kind, **members)


def whole(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> Json:
    """A response that was not streamed as one of ours. Raises ValueError when it has not ended."""
    response = owned(theirs, ours)
    if response["status"] not in ENDED:
        raise ValueError("no end")
    return response


def content_in(event: Mapping[str, Any]) -> str:
    """The text that an event adds; a finished item without deltas counts as none."""
    delta = event.get("delta")
    return delta if isinstance(delta, str) and event["type"].endswith(".delta") else ""
