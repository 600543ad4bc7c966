"""The endpoints of stored responses."""

from pathlib import Path

import pytest

from tests.support.contract import checked
from tests.support.responses import ResponsesPlane, responses_plane


@pytest.fixture
def response_id(responses: ResponsesPlane) -> str:
    """One with three input items."""
    items = [{"role": "user", "content": text} for text in "abc"]
    made = responses.raw("POST", "/responses", {"model": "m", "input": items})[1]
    return str(made["id"])


def test_pages_of_input_items(responses: ResponsesPlane, response_id: str) -> None:
    """Newest first unless asked otherwise, ``after`` an id, ``has_more`` as it is."""
    path = f"/responses/{response_id}/input_items"
    whole = responses.raw("GET", path)[1]
    assert [i["content"][0]["text"] for i in whole["data"]] == ["c", "b", "a"]
    assert (whole["object"], whole["has_more"]) == ("list", False)
    first = responses.raw("GET", f"{path}?limit=2&order=asc")[1]
    assert ([i["content"][0]["text"] for i in first["data"]], first["has_more"]) == (
        ["a", "b"],
        True,
    )
    second = responses.raw("GET", f"{path}?order=asc&after={first['last_id']}")[1]
    assert [i["content"][0]["text"] for i in second["data"]] == ["c"]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/input_items?limit=101", 400),
        ("GET", "/input_items?after=nope", 400),
        ("GET", "?stream=true&starting_after=x", 400),
        ("POST", "/cancel", 400),
        ("PUT", "", 405),
        ("GET", "/cancel", 405),
    ],
)
def test_refused(
    responses: ResponsesPlane, response_id: str, method: str, path: str, status: int
) -> None:
    """An error object on every path."""
    got = responses.raw(method, f"/responses/{response_id}{path}")
    checked(got[1], "error")
    assert got[0] == status


def test_a_body_that_is_none(responses: ResponsesPlane) -> None:
    """400 with the class of the call, which was not run."""
    with responses.running.client() as http:
        got = http.post("/responses", content=b"{")
    assert got.status_code == 400
    assert got.headers["x-headway-class"] == "interactive"


def test_without_a_key(responses: ResponsesPlane, response_id: str) -> None:
    """401 on each of them."""
    for method, path in (("POST", ""), ("GET", f"/{response_id}"), ("DELETE", f"/{response_id}")):
        assert responses.raw(method, f"/responses{path}", key="sk-wrong")[0] == 401


def test_a_full_disk(tmp_path: Path) -> None:
    """503 before a token is spent; what is not to be stored is served."""
    with responses_plane(tmp_path, HEADWAY_DISK_LIMIT_BYTES="1") as plane:
        status, error = plane.raw("POST", "/responses", {"model": "m", "input": "x"})
        assert (status, checked(error, "error")["error"]["code"]) == (503, "store_full")
        assert not plane.upstream.calls()
        body = {"model": "m", "input": "x", "store": False}
        assert plane.raw("POST", "/responses", body)[0] == 200
