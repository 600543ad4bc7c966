"""Pages: parameters are checked, list objects have every member."""

import pytest

from gateway.core.errors import InvalidRequest
from gateway.schemas.lists import PageRequest, list_object, parse_page, whole_number


def test_defaults_and_given_values() -> None:
    """Nothing given is the default; empty parameters count as not given."""
    assert parse_page({}) == PageRequest(20)
    query = {"limit": "5", "after": "x", "order": "asc"}
    assert parse_page(query) == PageRequest(5, "x", descending=False)
    assert parse_page({"after": "", "limit": ""}) == PageRequest(20)


@pytest.mark.parametrize(
    ("query", "param", "code"),
    [
        ({"limit": "0"}, "limit", "integer_below_min_value"),
        ({"limit": "101"}, "limit", "integer_above_max_value"),
        ({"limit": "ten"}, "limit", "invalid_type"),
        ({"order": "up"}, "order", "invalid_value"),
    ],
)
def test_wrong_values_name_their_parameter(query: dict[str, str], param: str, code: str) -> None:
    """The error says which parameter and why."""
    with pytest.raises(InvalidRequest) as refused:
        parse_page(query)
    assert (refused.value.param, refused.value.code) == (param, code)


@pytest.mark.parametrize("after", ["nope", "job_nope", "job_" + "0" * 25, "file-" + "0" * 24])
def test_a_page_begins_after_an_id(after: str) -> None:
    """One of that kind, whether the object is there or not."""
    known = "job_" + "0" * 24
    assert parse_page({"after": known}, prefix="job_").after == known
    with pytest.raises(InvalidRequest) as refused:
        parse_page({"after": after}, prefix="job_")
    assert refused.value.param == "after"


def test_an_empty_list_has_null_ids() -> None:
    """first_id and last_id are there, null when nothing is."""
    assert list_object([], has_more=False) == {
        "object": "list",
        "data": [],
        "first_id": None,
        "last_id": None,
        "has_more": False,
    }


def test_whole_number() -> None:
    """Digits only, and only as many as a number may have."""
    assert whole_number("0042") == 42
    for odd in ("", "-1", "1_0", "1e3", "\u00b2", "\uff11", "9" * 5000):
        assert whole_number(odd) is None
