"""The official client, unmodified, is the judge of the Responses API."""

import time
from pathlib import Path

import openai
import pytest
from pydantic import BaseModel

from tests.support.contract import checked
from tests.support.responses import (
    TOOL,
    ResponsesPlane,
    responses_plane,
    said,
)
from tests.support.scripts import answer


class City(BaseModel):
    """What is parsed."""

    name: str


def test_create(responses: ResponsesPlane) -> None:
    """A text and instructions become messages; the answer is a whole response."""
    responses.upstream.enqueue(answer(said("hello")))
    with responses.client() as client:
        response = client.responses.create(
            model="m",
            input="hi",
            instructions="be brief",
            max_output_tokens=20,
            temperature=0.5,
            metadata={"a": "b"},
            reasoning={"effort": "low"},
            extra_body={"top_k": 5, "chat_template_kwargs": {"x": 1}, "api_base": "http://evil"},
        )
    checked(response.model_dump(), "response")
    assert (response.output_text, response.status, response.metadata) == (
        "hello",
        "completed",
        {"a": "b"},
    )
    assert response.usage is not None
    assert (response.usage.input_tokens, response.usage.output_tokens) == (5, 2)
    sent = responses.upstream.calls()[-1].json
    assert sent == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": "hi"},
        ],
        "max_tokens": 20,
        "temperature": 0.5,
        "reasoning_effort": "low",
        "stream": False,
        "top_k": 5,
        "chat_template_kwargs": {"x": 1},
    }


def test_retrieve_items_and_delete(responses: ResponsesPlane) -> None:
    """A stored response is there until it is deleted, for its tenant alone."""
    with responses.client() as client:
        made = client.responses.create(model="m", input=[{"role": "user", "content": "hi"}])
        assert client.responses.retrieve(made.id).model_dump() == made.model_dump()
        items = list(client.responses.input_items.list(made.id))
        assert [item.model_dump(exclude={"id"}, exclude_none=True) for item in items] == [
            {
                "type": "message",
                "role": "user",
                "status": "completed",
                "content": [{"type": "input_text", "text": "hi"}],
            }
        ]
        assert responses.raw("GET", f"/responses/{made.id}", key="sk-other-tenant")[0] == 404
        assert responses.raw("DELETE", f"/responses/{made.id}", key="sk-other-tenant")[0] == 404
        with pytest.raises(openai.BadRequestError):
            client.responses.cancel(made.id)
        client.responses.delete(made.id)
        with pytest.raises(openai.NotFoundError):
            client.responses.retrieve(made.id)


def test_delete_says_so(responses: ResponsesPlane) -> None:
    """The answer to a delete, and to one of what was never there."""
    with responses.client() as client:
        made = client.responses.create(model="m", input="hi")
    gone = {"id": made.id, "object": "response", "deleted": True}
    assert responses.raw("DELETE", f"/responses/{made.id}") == (200, gone)
    status, error = responses.raw("DELETE", "/responses/resp_000000000000000000000000")
    assert status == 404
    checked(error, "error")


def test_not_stored(responses: ResponsesPlane) -> None:
    """``store: false`` leaves nothing behind."""
    with responses.client() as client:
        made = client.responses.create(model="m", input="hi", store=False)
        assert made.model_dump()["store"] is False
        with pytest.raises(openai.NotFoundError):
            client.responses.retrieve(made.id)


def test_parse(responses: ResponsesPlane) -> None:
    """A schema goes out as ``response_format``, the answer comes back as an object."""
    responses.upstream.enqueue(answer(said('{"name":"Rome"}')))
    with responses.client() as client:
        response = client.responses.parse(model="m", input="which?", text_format=City)
    assert response.output_parsed == City(name="Rome")
    wanted = responses.upstream.calls()[-1].json["response_format"]
    assert wanted["type"] == "json_schema"
    assert wanted["json_schema"]["name"] == "City"
    assert wanted["json_schema"]["schema"]["properties"]["name"]["type"] == "string"
    assert wanted["json_schema"]["strict"] is True


def test_tools_round_trip(responses: ResponsesPlane) -> None:
    """A call, its output, and the answer, by ``previous_response_id``."""
    responses.upstream.enqueue(
        answer(
            said(
                "",
                reasoning_content="I need the weather.",
                tool_calls=[
                    {
                        "id": "call_1",
                        "type": "function",
                        "function": {"name": "get", "arguments": '{"city":"Rome"}'},
                    }
                ],
            )
        ),
        answer(said("sunny")),
    )
    with responses.client() as client:
        first = client.responses.create(
            model="m",
            input="weather?",
            tools=[TOOL],
            tool_choice={"type": "function", "name": "get"},
        )
        call = next(item for item in first.output if item.type == "function_call")
        checked(call.model_dump(), "response_function_call_item")
        second = client.responses.create(
            model="m",
            previous_response_id=first.id,
            input=[{"type": "function_call_output", "call_id": call.call_id, "output": "sun"}],
            tools=[TOOL],
        )
    assert (call.name, call.arguments, call.call_id) == ("get", '{"city":"Rome"}', "call_1")
    assert second.output_text == "sunny"
    assert second.previous_response_id == first.id
    asked, again = (seen.json for seen in responses.upstream.calls())
    function = {name: value for name, value in TOOL.items() if name != "type"}
    assert asked["tools"] == [{"type": "function", "function": function}]
    assert asked["tool_choice"] == {"type": "function", "function": {"name": "get"}}
    assert again["messages"] == [
        {"role": "user", "content": "weather?"},
        {
            "role": "assistant",
            "content": None,
            "reasoning_content": "I need the weather.",
            "tool_calls": [
                {
                    "id": "call_1",
                    "type": "function",
                    "function": {"name": "get", "arguments": '{"city":"Rome"}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "sun"},
    ]


def test_conversation_over_three_turns(responses: ResponsesPlane) -> None:
    """Each turn has the earlier ones before it; instructions are not carried on."""
    with responses.client() as client:
        previous = None
        for turn in ("one", "two", "three"):
            responses.upstream.enqueue(answer(said(f"re {turn}")))
            response = client.responses.create(
                model="m",
                input=turn,
                instructions=f"for {turn}",
                previous_response_id=previous,
            )
            previous = response.id
    texts = [m["content"] for m in responses.upstream.calls()[-1].json["messages"]]
    assert texts == ["for three", "one", "re one", "two", "re two", "three"]


def test_unknown_previous_response(responses: ResponsesPlane) -> None:
    """404 that names the member; nothing is sent."""
    body = {"model": "m", "input": "x", "previous_response_id": "resp_nope"}
    status, error = responses.raw("POST", "/responses", body)
    assert (status, error["error"]["param"]) == (404, "previous_response_id")
    assert error["error"]["code"] == "previous_response_not_found"
    assert not responses.upstream.calls()


def test_short_path(responses: ResponsesPlane) -> None:
    """Without ``/v1`` as well; a GET of the collection is 405."""
    with responses.running.client() as http:
        short = f"{responses.running.root}/responses"
        assert http.post(short, json={"model": "m", "input": "x"}).status_code == 200
        assert http.get(short).status_code == 405


def test_expiry(tmp_path: Path) -> None:
    """After its time a response is gone."""
    seconds = 2
    with (
        responses_plane(tmp_path, HEADWAY_RESPONSE_DAYS=str(seconds / 86_400)) as responses,
        responses.client() as client,
    ):
        made = client.responses.create(model="m", input="hi")
        assert client.responses.retrieve(made.id).id == made.id
        time.sleep(seconds + 0.1)
        with pytest.raises(openai.NotFoundError):
            client.responses.retrieve(made.id)
