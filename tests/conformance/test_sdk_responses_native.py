"""Targets that have the Responses API themselves."""

import json

from tests.support.contract import checked
from tests.support.responses import (
    TEXT_EVENTS,
    ResponsesPlane,
    ended,
    events_of,
    kinds,
)


def test_native(responses: ResponsesPlane) -> None:
    """A target with the endpoint gets the conversation and keeps nothing; ids are ours."""
    with responses.client() as client:
        first = client.responses.create(
            model="n", input="hi", tools=[{"type": "web_search"}], metadata={"a": "b"}
        )
        checked(first.model_dump(), "response")
        second = client.responses.create(model="n", input="and?", previous_response_id=first.id)
        assert client.responses.retrieve(second.id).output_text == "3 items"
    assert first.id.startswith("resp_0")
    assert (first.output_text, first.model, first.metadata) == ("1 items", "n-2030", {"a": "b"})
    assert second.previous_response_id == first.id
    sent = responses.native.calls()[-1]
    assert sent.path == "/v1/responses"
    assert sent.json["store"] is False
    assert "previous_response_id" not in sent.json
    assert [item.get("role") for item in sent.json["input"]] == ["user", "assistant", "user"]
    assert "resp_of_the_target" not in json.dumps(second.model_dump())


def test_native_stream(responses: ResponsesPlane) -> None:
    """The target's events with our numbers and our id."""
    with responses.client() as client:
        events = events_of(client.responses.create(model="n", input="hi", stream=True))
        assert tuple(kinds(events)) == TEXT_EVENTS
        ids = {event["response"]["id"] for event in events if event.get("response")}
        assert len(ids) == 1
        assert client.responses.retrieve(ids.pop()).output_text == "1 items"


def test_native_background(responses: ResponsesPlane) -> None:
    """Our own queue runs it: the target gets a plain call."""
    with responses.client() as client:
        made = client.responses.create(model="n", input="hi", background=True)
        response = ended(client, made.id)
    checked(response.model_dump(), "response")
    assert (response.id, response.output_text, response.background) == (made.id, "1 items", True)
    assert "background" not in responses.native.calls()[-1].json
