"""Result lines and the answers in them."""

import orjson
import pytest

from gateway.batches.lines import http_error_line, success_line, transport_error_line
from gateway.jobs.results import error_in, result_of


def test_a_good_answer() -> None:
    """Status and body as the target gave them."""
    result = result_of(success_line("c", 200, "req_1", {"id": "x", "usage": None}))
    assert (result.status, orjson.loads(result.body)) == (200, {"id": "x", "usage": None})


def test_long_integers_stay() -> None:
    """An answer is what it was, numbers beyond 64 bits included."""
    result = result_of(success_line("c", 200, "req_1", {"seed": 2**70}))
    assert result.body == b'{"seed":%d}' % 2**70


def test_a_refusal_of_the_target() -> None:
    """Its own status and error object."""
    body = b'{"error":{"message":"too long","type":"invalid_request_error","code":"ctx"}}'
    line = http_error_line("c", 400, "req_1", body)
    result = result_of(line)
    assert (result.status, orjson.loads(result.body)["error"]["code"]) == (400, "ctx")
    assert error_in(line) == {"code": "ctx", "message": "too long"}


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("timeout", 504, "server_error"),
        ("connection_error", 503, "server_error"),
        ("max_deliveries", 502, "server_error"),
        ("model_not_found", 404, "invalid_request_error"),
    ],
)
def test_no_answer(code: str, status: int, kind: str) -> None:
    """The status that the call itself would have had, and an error object."""
    line = transport_error_line("c", code, "it failed")
    result = result_of(line)
    assert result.status == status
    assert orjson.loads(result.body) == {
        "error": {"message": "it failed", "type": kind, "param": None, "code": code}
    }
    assert error_in(line) == {"code": code, "message": "it failed"}
