"""Streamed responses, read by the official client."""

import openai
import pytest

from tests.support.contract import checked
from tests.support.responses import (
    TEXT_EVENTS,
    TOOL,
    ResponsesPlane,
    events_of,
    kinds,
    tool_stream,
)
from tests.support.scripts import Sse, chat_chunk, usage_chunk


def test_stream(responses: ResponsesPlane) -> None:
    """The events in the order of the API; what was streamed is what is stored."""
    with responses.client() as client:
        events = events_of(client.responses.create(model="m", input="hi", stream=True))
        assert tuple(kinds(events)) == TEXT_EVENTS
        text = "".join(e["delta"] for e in events if e["type"] == "response.output_text.delta")
        final = events[-1]["response"]
        checked(final, "response")
        assert final["output"][0]["content"][0]["text"] == text
        assert final["usage"]["output_tokens"] == 16
        assert client.responses.retrieve(final["id"]).output_text == text
        with client.responses.stream(model="m", input="hi") as stream:
            stream.until_done()
            assert stream.get_final_response().output_text == text


def test_streamed_tool_calls(responses: ResponsesPlane) -> None:
    """Argument deltas of two calls, each put together by the client."""
    responses.upstream.enqueue(tool_stream(), tool_stream())
    with responses.client() as client:
        events = events_of(
            client.responses.create(model="m", input="hi", tools=[TOOL], stream=True)
        )
        with client.responses.stream(model="m", input="hi", tools=[TOOL]) as stream:
            stream.until_done()
            whole = stream.get_final_response()
    deltas = [e["delta"] for e in events if e["type"].endswith("arguments.delta")]
    assert deltas == ['{"city":', '"Rome"}', "{}"]
    assert [e["name"] for e in events if e["type"].endswith("arguments.done")] == ["get", "put"]
    calls = [item for item in whole.output if item.type == "function_call"]
    assert [(c.name, c.arguments, c.call_id) for c in calls] == [
        ("get", '{"city":"Rome"}', "call_a"),
        ("put", "{}", "call_b"),
    ]


def test_incomplete(responses: ResponsesPlane) -> None:
    """A limit that is reached makes the response incomplete, streamed or not."""
    with responses.client() as client:
        plain = client.responses.create(model="m", input="hi", max_output_tokens=16)
        events = events_of(
            client.responses.create(model="m", input="hi", max_output_tokens=16, stream=True)
        )
    assert plain.status == "incomplete"
    assert plain.incomplete_details is not None
    assert plain.incomplete_details.reason == "max_output_tokens"
    assert events[-1]["type"] == "response.incomplete"
    assert events[-1]["response"]["output"][0]["status"] == "incomplete"


def test_refusal_and_reasoning(responses: ResponsesPlane) -> None:
    """Thoughts are an item of their own, a refusal is a part."""
    responses.upstream.enqueue(
        Sse(
            [
                chat_chunk(role="assistant"),
                chat_chunk(reasoning_content="hm"),
                chat_chunk(refusal="no"),
                chat_chunk(finish="stop"),
                usage_chunk(3, 2),
            ]
        )
    )
    with responses.client() as client:
        events = events_of(client.responses.create(model="m", input="hi", stream=True))
    final = events[-1]["response"]
    assert [item["type"] for item in final["output"]] == ["reasoning", "message"]
    assert final["output"][0]["content"][0] == {"type": "reasoning_text", "text": "hm"}
    assert final["output"][1]["content"] == [{"type": "refusal", "refusal": "no"}]
    names = kinds(events)
    assert "response.reasoning_text.delta" in names
    assert "response.refusal.done" in names


def test_a_cut_stream_is_one_error_event(responses: ResponsesPlane) -> None:
    """After content the client raises; nothing is stored and there is no clean end."""
    responses.upstream.enqueue(Sse([chat_chunk(role="assistant"), chat_chunk("he")], end="close"))
    with responses.client() as client:
        stream = client.responses.create(model="m", input="hi", stream=True)
        seen: list[str] = []
        with pytest.raises(openai.APIError) as caught:
            seen.extend(event.type for event in stream)
    assert seen[-1] == "response.output_text.delta"
    assert caught.value.code == "upstream_stream_interrupted"
