"""What the Responses API refuses, and how."""

from typing import Any

import pytest

from tests.support.contract import checked
from tests.support.responses import (
    ResponsesPlane,
)
from tests.support.scripts import answer


def test_errors_before_the_first_event(responses: ResponsesPlane) -> None:
    """A refused call is an ordinary error with its status, streamed or not."""
    for stream in (False, True):
        body = {"error": {"message": "too long", "type": "invalid_request_error", "code": "x"}}
        responses.upstream.enqueue(answer(body, 400))
        status, error = responses.raw(
            "POST", "/responses", {"model": "m", "input": "x", "stream": stream}
        )
        assert (status, error["error"]["message"]) == (400, "too long")


@pytest.mark.parametrize(
    ("members", "param"),
    [
        ({"input": 3}, "input"),
        ({"input": []}, "input"),
        ({"input": [{"content": "x"}]}, "input[0].type"),
        ({"input": [{"role": "user"}]}, "input[0].content"),
        ({"input": [{"type": "computer_call"}]}, "input[0].type"),
        ({"input": [{"type": "item_reference", "id": "msg_1"}]}, "input[0]"),
        ({"max_output_tokens": 15}, "max_output_tokens"),
        ({"temperature": 3}, "temperature"),
        ({"metadata": {"a": 1}}, "metadata.a"),
        ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
        ({"tools": [{"name": "x"}]}, "tools[0].type"),
        ({"conversation": "conv_1"}, "conversation"),
        ({"background": True, "store": False}, "store"),
        (
            {"background_options": {"completion_window": "2h"}},
            "background_options.completion_window",
        ),
        (
            {"background": True, "stream": True, "background_options": {"completion_window": "2h"}},
            "stream",
        ),
        ({"model": None}, "model"),
    ],
)
def test_refused(responses: ResponsesPlane, members: dict[str, Any], param: str) -> None:
    """400 that names the member."""
    status, error = responses.raw("POST", "/responses", {"model": "m", "input": "x", **members})
    checked(error, "error")
    assert (status, error["error"]["param"]) == (400, param)


def test_unknown_model(responses: ResponsesPlane) -> None:
    """404, at once and in the background."""
    for members in ({}, {"background": True}):
        status, error = responses.raw("POST", "/responses", {"model": "x", "input": "x", **members})
        assert (status, error["error"]["code"]) == (404, "model_not_found")
