"""What a reader of results may ask for."""

import orjson
import pytest

from gateway.core.errors import InvalidRequest
from gateway.schemas.results import ResultsRequest, parse_results, with_cursor


def test_parameters() -> None:
    """All absent, and all given."""
    assert parse_results({}) == ResultsRequest("", follow=False, limit=None)
    given = {"after": "abc", "follow": "1", "limit": "10"}
    assert parse_results(given) == ResultsRequest("abc", follow=True, limit=10)


@pytest.mark.parametrize(
    ("name", "value"),
    [("follow", "maybe"), ("limit", "0"), ("limit", "-1"), ("limit", "x"), ("limit", "9" * 5000)],
)
def test_faults(name: str, value: str) -> None:
    """InvalidRequest naming the parameter."""
    with pytest.raises(InvalidRequest) as refused:
        parse_results({name: value})
    assert refused.value.param == name


def test_the_cursor_is_one_more_member() -> None:
    """The line stays one line with all its members, whatever text it has."""
    line = {"id": "1", "custom_id": "a}\u2028", "response": None, "error": {"code": "x"}}
    sent = with_cursor(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE), "AQ")
    assert sent.endswith(b"}\n")
    assert orjson.loads(sent) == {**line, "headway_cursor": "AQ"}
