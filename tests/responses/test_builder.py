"""Chunks in, events and a response out."""

from typing import Any

import pytest

from gateway.responses.builder import MALFORMED, ResponseBuilder, whole_response
from gateway.responses.shape import new_response
from tests.support.contract import checked
from tests.support.scripts import chat_chunk, usage_chunk

BEGUN = new_response("resp_1", 5, {"model": "m", "input": "x"}, status="in_progress", tier=None)
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": ""}}


def _all(*chunks: dict[str, Any]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    builder = ResponseBuilder(BEGUN)
    events = builder.start()
    for chunk in chunks:
        events += builder.feed(chunk)
    events += builder.finish(9)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    for event in events:
        checked(event, "response_event")
    return events, checked(builder.response, "response")


def test_what_is_told_does_not_grow_later() -> None:
    """Each event shows the response and its items as they were at its time."""
    events, _ = _all(chat_chunk("a"), chat_chunk("b"), chat_chunk(finish="stop"))
    by_type = {event["type"]: event for event in events}
    assert by_type["response.created"]["response"]["output"] == []
    assert by_type["response.output_item.added"]["item"]["content"] == []
    assert by_type["response.output_item.added"]["item"]["status"] == "in_progress"
    assert by_type["response.content_part.added"]["part"]["text"] == ""
    assert by_type["response.output_item.done"]["item"]["content"][0]["text"] == "ab"


def test_text_then_calls_that_alternate() -> None:
    """Arguments find their call by its number, also when the calls take turns."""
    events, response = _all(
        chat_chunk("so:"),
        chat_chunk(tool_calls=[{"index": 0, **CALL}, {"index": 1, **CALL, "id": "c2"}]),
        chat_chunk(tool_calls=[{"index": 1, "function": {"arguments": "2"}}]),
        chat_chunk(tool_calls=[{"index": 0, "function": {"arguments": "1"}}]),
        chat_chunk(finish="tool_calls"),
    )
    assert [item["type"] for item in response["output"]] == [
        "message",
        "function_call",
        "function_call",
    ]
    assert [(c["call_id"], c["arguments"]) for c in response["output"][1:]] == [
        ("c1", "1"),
        ("c2", "2"),
    ]
    deltas = [e for e in events if e["type"] == "response.function_call_arguments.delta"]
    assert [(e["output_index"], e["delta"]) for e in deltas] == [(2, "2"), (1, "1")]
    assert response["status"] == "completed"
    assert response["completed_at"] == 9


def test_a_refusal_after_text_is_a_part_of_the_same_message() -> None:
    """The parts are counted; each gets its end before the next one begins."""
    events, response = _all(
        chat_chunk("a"), chat_chunk(refusal="no"), chat_chunk(finish="content_filter")
    )
    assert [part["type"] for part in response["output"][0]["content"]] == ["output_text", "refusal"]
    assert (response["status"], response["incomplete_details"]) == (
        "incomplete",
        {"reason": "content_filter"},
    )
    refusal = next(e for e in events if e["type"] == "response.refusal.delta")
    assert (refusal["output_index"], refusal["content_index"]) == (0, 1)


def test_usage_model_and_logprobs() -> None:
    """What the target tells of itself is in the response."""
    chunk = chat_chunk("a")
    entry = {"token": "a", "logprob": -1, "bytes": [97], "top_logprobs": []}
    chunk["choices"][0]["logprobs"] = {"content": [entry]}
    events, response = _all(
        {**chunk, "model": "served"}, chat_chunk(finish="stop"), usage_chunk(4, 2)
    )
    assert response["model"] == "m"
    assert response["usage"]["input_tokens"] == 4
    assert response["output"][0]["content"][0]["logprobs"] == [entry]
    delta = next(e for e in events if e["type"] == "response.output_text.delta")
    assert delta["logprobs"] == [{"token": "a", "logprob": -1, "top_logprobs": []}]


def test_a_whole_answer() -> None:
    """The same response as from a stream."""
    message = {"content": "a", "reasoning": "hm", "tool_calls": [CALL, {**CALL, "id": "c2"}]}
    answer = {"choices": [{"index": 0, "message": message, "finish_reason": "length"}]}
    response = checked(whole_response(BEGUN, answer, 9), "response")
    assert [item["type"] for item in response["output"]] == [
        "reasoning",
        "message",
        "function_call",
        "function_call",
    ]
    assert response["status"] == "incomplete"
    assert BEGUN["output"] == []


@pytest.mark.parametrize(
    "delta", [{"content": 3}, {"tool_calls": [3]}, {"tool_calls": [{"function": "x"}]}, "text"]
)
def test_chunks_of_odd_types(delta: Any) -> None:
    """They raise what the caller expects, and nothing else."""
    with pytest.raises(MALFORMED):
        ResponseBuilder(BEGUN).feed({"choices": [{"index": 0, "delta": delta}]})
