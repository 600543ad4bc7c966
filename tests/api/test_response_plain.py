"""Answers that are not streamed."""

from typing import Any

import pytest

from tests.support.contract import checked
from tests.support.responses import ResponsesPlane, native_response, said
from tests.support.scripts import answer, raw

ODD_CALL = {"choices": [{"index": 0, "message": {"tool_calls": ["x"]}, "finish_reason": "stop"}]}


@pytest.mark.parametrize(
    ("model", "body"),
    [("m", {"a": 1}), ("m", ODD_CALL), ("n", {"a": 1}), ("n", {"output": "text"})],
)
def test_an_answer_that_is_none(responses: ResponsesPlane, model: str, body: Any) -> None:
    """502, as for every endpoint."""
    upstream = responses.upstream if model == "m" else responses.native
    upstream.enqueue(answer(body))
    status, error = responses.raw("POST", "/responses", {"model": model, "input": "x"})
    assert (status, checked(error, "error")["error"]["code"]) == (502, "upstream_failed")


def test_html_and_credentials(responses: ResponsesPlane) -> None:
    """A page is no error object; a refused key of ours is our 502."""
    for script in (raw(b"<html>secret</html>", 500), answer({"error": {"message": "key"}}, 401)):
        responses.native.enqueue(script)
        status, error = responses.raw("POST", "/responses", {"model": "n", "input": "x"})
        assert status in {500, 502}
        assert "html" not in str(checked(error, "error"))
        assert "key" not in error["error"]["message"] or status == 502


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
