"""One line, one verdict: faults that a reader of the file can see."""

from typing import Any

import orjson
import pytest

from gateway.batches.validate import LineChecker, LineFault

URL = "/v1/chat/completions"


def _line(**members: Any) -> bytes:
    body = {"model": "m", "messages": []}
    line = {"custom_id": "a", "method": "POST", "url": URL, "body": body, **members}
    return orjson.dumps({name: value for name, value in line.items() if value != "absent"})


def _fault(raw: bytes) -> tuple[str, str | None]:
    with pytest.raises(LineFault) as fault:
        LineChecker(URL, ["m"]).check(raw, 1)
    assert fault.value.message
    return fault.value.code, fault.value.param


@pytest.mark.parametrize("raw", [b"{", b"[]", b"5", b'{"a":NaN}', b'"\xff"', b'{"a": 1} x'])
def test_what_is_no_json_object(raw: bytes) -> None:
    """BAT-10: broken JSON and other values than objects."""
    assert _fault(raw) == ("invalid_json_line", None)


@pytest.mark.parametrize("name", ["custom_id", "method", "url", "body"])
def test_missing_members_are_named(name: str) -> None:
    """BAT-10: absent or null, the member is named."""
    assert _fault(_line(**{name: "absent"})) == ("missing_required_parameter", name)
    assert _fault(_line(**{name: None})) == ("missing_required_parameter", name)


@pytest.mark.parametrize(
    ("members", "fault"),
    [
        ({"custom_id": 5}, ("invalid_request", "custom_id")),
        ({"custom_id": ""}, ("invalid_request", "custom_id")),
        ({"method": "GET"}, ("invalid_method", "method")),
        ({"url": "/v1/embeddings"}, ("invalid_url", "url")),
        ({"body": []}, ("invalid_request", "body")),
        ({"body": {"model": "m", "stream": True}}, ("streaming_unsupported", "body.stream")),
        ({"body": {"messages": []}}, ("invalid_request", "body.model")),
        ({"body": {"model": "n", "messages": []}}, ("model_not_found", "body.model")),
        ({"body": {"model": "m"}}, ("missing_required_parameter", "body.messages")),
    ],
)
def test_other_faults(members: dict[str, Any], fault: tuple[str, str]) -> None:
    """BAT-10: each fault has its code and names its member."""
    assert _fault(_line(**members)) == fault


def test_a_repeated_id_names_itself_and_the_first_line() -> None:
    """BAT-09: the second line is at fault; ids are compared exactly."""
    checker = LineChecker(URL, ["m"])
    checker.check(_line(custom_id="\u00e9"), 2)
    checker.check(_line(custom_id="e\u0301"), 3)
    with pytest.raises(LineFault) as fault:
        checker.check(_line(custom_id="\u00e9"), 5)
    assert fault.value.entry(5) == {
        "code": "duplicate_custom_id",
        "line": 5,
        "message": "custom_id '\u00e9' was used on line 2 already.",
        "param": "custom_id",
    }


def test_a_good_line() -> None:
    """The line says where it goes and what it asks; stream false is fine."""
    body = {"model": "m", "messages": [], "stream": False}
    line = LineChecker(URL, ["m"]).check(_line(body=body), 1)
    assert (line.custom_id, line.model, line.body) == ("a", "m", body)


@pytest.mark.parametrize("levels", [300, 5000])
def test_a_line_nested_too_deeply(levels: int) -> None:
    """What could not be sent is a fault of its line, which says so."""
    raw = _line(body={"model": "m", "messages": [], "x": 0}).replace(
        b'"x":0', b'"x":' + b"[" * levels + b"]" * levels
    )
    with pytest.raises(LineFault, match="nested too deeply") as fault:
        LineChecker(URL, ["m"]).check(raw, 1)
    assert fault.value.code == "invalid_json_line"
