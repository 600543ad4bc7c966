"""Events of a response that is made elsewhere."""

from typing import Any

from gateway.responses.builder import whole_response
from gateway.responses.replay import Replay
from gateway.responses.shape import new_response
from tests.support.contract import checked
from tests.support.responses import native_response

QUEUED = new_response("resp_1", 5, {"model": "m", "input": "x"}, status="queued", tier=None)


def _ended() -> dict[str, Any]:
    call = {"id": "c", "function": {"name": "f", "arguments": "{}"}}
    message = {"content": "a", "reasoning": "hm", "tool_calls": [call]}
    answer = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    return whole_response(QUEUED, answer, 9)


def test_however_often_it_is_looked_at() -> None:
    """The events and their numbers are the same, and each is told once."""
    ended = _ended()
    patient, late = Replay(), Replay()
    events = [
        *patient.waiting(QUEUED),
        *patient.waiting(QUEUED),
        *patient.running({**QUEUED, "status": "in_progress"}),
        *patient.running({**QUEUED, "status": "in_progress"}),
        *patient.ended(ended),
    ]
    assert [checked(e, "response_event")["sequence_number"] for e in events] == list(
        range(len(events))
    )
    at_once = late.ended(ended)
    assert [e["type"] for e in at_once] == [e["type"] for e in events]
    assert at_once == events
    assert events[0]["response"]["status"] == "queued"
    assert events[0]["response"]["output"] == []
    assert events[-1]["response"] == ended


def test_all_of_the_output_is_in_it() -> None:
    """Thoughts, text and arguments as deltas, then whole."""
    events = Replay().ended(_ended())
    deltas = {e["type"]: e["delta"] for e in events if e["type"].endswith("delta")}
    assert deltas == {
        "response.reasoning_text.delta": "hm",
        "response.output_text.delta": "a",
        "response.function_call_arguments.delta": "{}",
    }
    done = [e["item"]["type"] for e in events if e["type"] == "response.output_item.done"]
    assert done == ["reasoning", "message", "function_call"]


def test_items_of_other_kinds_and_ends() -> None:
    """An item that we do not know is told whole; a cancelled response ends as failed."""
    other = {"id": "ws_1", "type": "web_search_call", "status": "completed"}
    response = {**QUEUED, **native_response("hi"), "status": "cancelled"}
    response["output"] = [other, *response["output"]]
    events = Replay().ended(response)
    assert events[4]["item"] == other
    assert events[-1]["type"] == "response.failed"
    assert events[-1]["response"]["status"] == "cancelled"
