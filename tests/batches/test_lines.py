"""Lines are exact OpenAI objects, one per row, whatever the target answered."""

import json

import orjson
import pytest

from gateway.batches.lines import (
    EXPIRED,
    http_error_line,
    success_line,
    transport_error_line,
    unexecuted_line,
)
from tests.support.contract import checked


def test_a_success() -> None:
    """BAT-28: the body is the target's; ids differ per line."""
    lines = [success_line("a", 200, f"req_{n}", {"x": 1}) for n in range(2)]
    first, second = (checked(orjson.loads(line), "batch_output_line") for line in lines)
    assert first["response"]["body"] == {"x": 1}
    assert first["id"] != second["id"]


def test_a_line_is_one_line() -> None:
    """BAT-23: U+2028 and newlines in an answer do not split the line."""
    text = "a\u2028b\nc\x85d"
    line = success_line("id\u2028", 200, "req_1", {"text": text})
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert orjson.loads(line)["response"]["body"]["text"] == text


def test_a_refusal_keeps_the_targets_error() -> None:
    """BAT-15: a 400 with an OpenAI error goes in as it came, missing members as null."""
    body = b'{"error":{"message":"no","type":"invalid_request_error","extra":1,"code":42}}'
    line = checked(orjson.loads(http_error_line("a", 400, "req_1", body)), "batch_error_line")
    assert line["response"]["status_code"] == 400
    assert line["response"]["body"]["error"] == {
        "message": "no",
        "type": "invalid_request_error",
        "extra": 1,
        "code": "42",
        "param": None,
    }


@pytest.mark.parametrize("body", [b"<html>" + b"x" * 5000, "ü".encode() * 3000, b"", b"\xff\xfe"])
def test_html_becomes_a_message(body: bytes) -> None:
    """BAT-16: text that is no JSON is kept as a message of at most 1 kB."""
    line = checked(orjson.loads(http_error_line("a", 502, "req_1", body)), "batch_error_line")
    message = line["response"]["body"]["error"]["message"]
    assert 0 < len(message.encode()) <= 1024
    assert body[:6].decode("utf-8", "replace")[:2] in message or not body


def test_a_status_that_is_no_failure_is_a_bad_gateway() -> None:
    """BAT-15: no status 0 or 302 in a line."""
    line = checked(orjson.loads(http_error_line("a", 302, "req_1", b"")), "batch_error_line")
    assert line["response"]["status_code"] == 502


def test_no_http_answer() -> None:
    """BAT-15: response is null, the code says what happened."""
    line = transport_error_line("a", "connection_error", "The target refused the connection.")
    parsed = checked(orjson.loads(line), "batch_error_line")
    assert parsed["response"] is None
    assert parsed["error"]["code"] == "connection_error"


def test_rows_not_run_get_the_same_line_each_time() -> None:
    """Finalising twice writes the same bytes; other rows get other ids."""
    line = unexecuted_line("batch_1.0", 3, "a", EXPIRED)
    assert line == unexecuted_line("batch_1.0", 3, "a", EXPIRED)
    parsed = checked(orjson.loads(line), "batch_error_line")
    assert parsed["error"] == {
        "code": "batch_expired",
        "message": "This request could not be executed before the completion window expired.",
    }
    assert parsed["id"] != orjson.loads(unexecuted_line("batch_1.0", 4, "a", EXPIRED))["id"]


def test_long_integers_stay() -> None:
    """Beside half of a pair, too."""
    body = {"seed": 2**70, "text": "\ud83d"}
    line = success_line("a", 200, "req_1", body)
    assert line.endswith(b"}\n")
    assert json.loads(line)["response"]["body"] == {"seed": 2**70, "text": "\ufffd"}


def test_half_a_pair_is_lost() -> None:
    """Whoever reads the file can: halves that belong together are joined, a lone one is marked."""
    line = success_line("a", 200, "req_1", {"text": "\ud83d\ude42 \ud83d", "é": 1})
    assert orjson.loads(line)["response"]["body"] == {"text": "🙂 \ufffd", "é": 1}
