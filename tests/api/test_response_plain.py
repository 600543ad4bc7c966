"""Answers that are not streamed."""

from typing import Any

import pytest

from tests.support.contract import checked
from tests.support.responses import ResponsesPlane, native_response, said
from tests.support.scripts import answer, raw

ODD_CALL = {"choices": [{"index": 0, "message": {"tool_calls": ["x"]}, "finish_reason": "stop"}]}


@pytest.mark.parametrize(
    ("model", "body"),
    [
        ("m", {"a": 1}),
        ("m", ODD_CALL),
        ("n", {"a": 1}),
        ("n", {"output": "text"}),
        ("n", {"output": [], "status": "queued"}),
    ],
)
def test_an_answer_that_is_none(responses: ResponsesPlane, model: str, body: Any) -> None:
    """502, as for every endpoint."""
    upstream = responses.upstream if model == "m" else responses.native
    upstream.enqueue(answer(body))
    status, error = responses.raw("POST", "/responses", {"model": model, "input": "x"})
    assert (status, checked(error, "error")["error"]["code"]) == (502, "upstream_failed")


@pytest.mark.parametrize(("told", "status"), [(500, 500), (200, 502), (404, 404)])
def test_pages(responses: ResponsesPlane, told: int, status: int) -> None:
    """A page is no error object."""
    responses.native.enqueue(raw(b"<html>secret</html>", told))
    got, error = responses.raw("POST", "/responses", {"model": "n", "input": "x"})
    assert got == status
    assert "secret" not in str(checked(error, "error"))


def test_a_native_failure(responses: ResponsesPlane) -> None:
    """A response that failed is an error answer, not a 200."""
    failed = {**native_response("", "failed"), "error": {"code": "server_error", "message": "no"}}
    responses.native.enqueue(answer(failed))
    status, error = responses.raw("POST", "/responses", {"model": "n", "input": "x"})
    assert (status, error["error"]["message"]) == (502, "no")


def test_the_whole_answer(responses: ResponsesPlane) -> None:
    """With length and headers; tokens as the target told."""
    responses.upstream.enqueue(answer(said("a")))
    with responses.running.client() as http:
        got = http.post("/responses", json={"model": "m", "input": "x"})
    assert got.headers["content-type"] == "application/json"
    assert int(got.headers["content-length"]) == len(got.content)
    assert got.headers["x-headway-attempts"] == "1"
    assert checked(got.json(), "response")["usage"]["total_tokens"] == 7
