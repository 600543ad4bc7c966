"""Events of a target that has the endpoint."""

from typing import Any

import pytest

from gateway.responses.native import NativeEvents, content_in, whole
from gateway.responses.shape import new_response
from tests.support.responses import native_events, native_response

OURS = new_response("resp_1", 5, {"model": "m", "input": "x"}, status="in_progress", tier="default")


def test_ids_and_numbers_are_ours() -> None:
    """All else passes as it is."""
    events = NativeEvents(OURS)
    told = [events.rewritten(event) for event in native_events("hi")]
    assert [event["sequence_number"] for event in told] == list(range(9))
    assert {event["response"]["id"] for event in told if "response" in event} == {"resp_1"}
    assert told[4]["delta"] == "hi"
    assert events.response["status"] == "completed"
    assert (events.response["id"], events.response["model"]) == ("resp_1", "n-2030")


@pytest.mark.parametrize(
    "event", [{}, {"type": 3}, {"type": "chunk"}, {"type": "response.completed"}]
)
def test_what_is_no_event(event: dict[str, object]) -> None:
    """ValueError."""
    with pytest.raises(ValueError, match=r"not an event|without"):
        NativeEvents(OURS).rewritten(event)


def test_a_whole_one() -> None:
    """One that has not ended is no answer."""
    assert whole(native_response("hi"), OURS)["id"] == "resp_1"
    odd: tuple[Any, ...] = ("in_progress", None, [])
    for status in odd:
        with pytest.raises(ValueError, match="no end"):
            whole({**native_response("hi"), "status": status}, OURS)


def test_content() -> None:
    """Deltas are content."""
    assert content_in({"type": "response.output_text.delta", "delta": "x"}) == "x"
    assert content_in({"type": "response.output_text.done", "text": "x"}) == ""
