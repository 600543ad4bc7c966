"""Events of a streamed response: numbered from 0, in the order of the API."""

from collections.abc import Mapping, Sequence
from typing import Any

from gateway.core.exact_json import dumps

Json = dict[str, Any]
FINAL = frozenset({"response.completed", "response.incomplete", "response.failed"})
#: States of a response that stays as it is. A tuple: what a target sends may be anything.
ENDED = ("completed", "incomplete", "failed", "cancelled")

#: The member that holds the text of a part, by the part's type.
TEXT_OF = {"output_text": "text", "reasoning_text": "text", "refusal": "refusal"}


class Numbered:
    """Makes events and counts them."""

    def __init__(self) -> None:
        self._next = 0

    def __call__(self, kind: str, **members: Any) -> Json:
        """The next event."""
        event = {"type": kind, "sequence_number": self._next, **members}
        self._next += 1
        return event


def encoded(events: Sequence[Mapping[str, Any]]) -> bytes:
    """As server-sent events."""
    return b"".join(
        b"event: %b\ndata: %b\n\n" % (str(event["type"]).encode(), dumps(event)) for event in events
    )


def error_event(number: Numbered, error: Mapping[str, Any]) -> Json:
    """The event that ends a broken stream, in the words of this API and of the others."""
    return number(
        "error",
        code=error.get("code"),
        message=error.get("message"),
        param=error.get("param"),
        error=dict(error),
    )


def text_events(kind: str) -> tuple[str, str]:
    """The names of the delta and of the end of a part of ``kind``."""
    stem = f"response.{kind}"
    return f"{stem}.delta", f"{stem}.done"
