"""Requests of the Responses API."""

from typing import Any

import orjson
import pytest

from gateway.core.errors import InvalidRequest
from gateway.schemas.responses import (
    WINDOWS,
    ResponseRequest,
    input_items,
    parse_response,
    parse_response_row,
)


def _parse(**members: Any) -> ResponseRequest:
    return parse_response(orjson.dumps({"model": "m", "input": "hi", **members}))


def test_a_text() -> None:
    """One message of the user; stored, at once."""
    request = _parse(max_output_tokens=20, top_k=3)
    assert request.input == [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}
    ]
    assert (request.store, request.background, request.previous) == (True, False, None)
    assert request.call.max_completion == 20
    assert request.members["top_k"] == 3


def test_items() -> None:
    """An item with a role is a message; all else says what it is."""
    items = input_items([{"role": "user", "content": "a"}, {"type": "reasoning", "id": "rs_1"}])
    assert [item["type"] for item in items] == ["message", "reasoning"]


def test_nothing_new_in_a_conversation() -> None:
    """An empty input goes on from a response."""
    assert _parse(input=[], previous_response_id="resp_1").previous == "resp_1"
    with pytest.raises(InvalidRequest):
        _parse(input=[])


@pytest.mark.parametrize("window", sorted(WINDOWS))
def test_windows(window: str) -> None:
    """A background response has a completion window."""
    options = {"completion_window": window}
    assert _parse(background=True, background_options=options).window == window
    assert _parse(background=True).window == "soonest"


@pytest.mark.parametrize(
    ("members", "param"),
    [
        ({"instructions": 3}, "instructions"),
        ({"store": "no"}, "store"),
        ({"tools": "x"}, "tools"),
        ({"tools": ["x"]}, "tools[0]"),
        ({"tools": [{"type": 3}]}, "tools[0].type"),
        ({"text": "x"}, "text"),
        ({"include": "x"}, "include"),
        ({"truncation": "some"}, "truncation"),
        ({"service_tier": "gold"}, "service_tier"),
        ({"previous_response_id": 3}, "previous_response_id"),
        ({"prompt": {"id": "p"}}, "prompt"),
        ({"input": ["x"]}, "input[0]"),
        ({"input": [{"type": 3}]}, "input[0].type"),
        ({"input": [{"role": 3, "content": "x"}]}, "input[0].role"),
        ({"input": [{"role": "user", "content": 3}]}, "input[0].content"),
        ({"background_options": 3}, "background_options"),
        (
            {"background": True, "background_options": {"completion_window": "9h"}},
            "background_options.completion_window",
        ),
    ],
)
def test_refused(members: dict[str, Any], param: str) -> None:
    """The error names the member."""
    with pytest.raises(InvalidRequest) as caught:
        _parse(**members)
    assert caught.value.param == param


def test_a_row() -> None:
    """A line of a batch stands by itself."""
    body = {"model": "m", "input": "hi"}
    assert parse_response_row(orjson.dumps(body)).members == body
    for more in ({"previous_response_id": "resp_1"}, {"background": True}):
        with pytest.raises(InvalidRequest):
            parse_response_row(orjson.dumps({**body, **more}))
