"""Create requests are checked at once; the Batch object has every member."""

from typing import Any

import orjson
import pytest

from gateway.core.errors import InvalidRequest
from gateway.core.usage import Usage
from gateway.schemas.batch import TIMES, Counts, batch_object, parse_batch_create
from tests.support.contract import checked

GOOD = {"input_file_id": "file-1", "endpoint": "/v1/chat/completions", "completion_window": "24h"}


def _parse(**members: Any) -> Any:
    return parse_batch_create(orjson.dumps({**GOOD, **members}), 3600)


@pytest.mark.parametrize(
    ("window", "seconds"), [("24h", 86_400), ("1h", 3600), ("90m", 5400), ("2d", 172_800)]
)
def test_windows(window: str, seconds: int) -> None:
    """Any window from the shortest allowed one up is a real deadline."""
    assert _parse(completion_window=window).window_seconds == seconds


def test_the_shortest_window_is_a_setting() -> None:
    """A test may ask for seconds."""
    body = orjson.dumps({**GOOD, "completion_window": "10s"})
    assert parse_batch_create(body, 2).window_seconds == 10


def test_optional_members() -> None:
    """Null means not given; metadata and output expiry come through."""
    assert _parse(metadata=None, output_expires_after=None).metadata is None
    expiry = {"anchor": "created_at", "seconds": 7200}
    wanted = _parse(metadata={"k": "v"}, output_expires_after=expiry, unknown=1)
    assert (wanted.metadata, wanted.output_seconds) == ({"k": "v"}, 7200)


@pytest.mark.parametrize(
    ("members", "param", "code"),
    [
        ({"input_file_id": None}, "input_file_id", "missing_required_parameter"),
        ({"input_file_id": 5}, "input_file_id", "invalid_type"),
        ({"endpoint": "/v1/images"}, "endpoint", "invalid_value"),
        ({"completion_window": "30m"}, "completion_window", "invalid_value"),
        ({"completion_window": "soon"}, "completion_window", "invalid_value"),
        ({"completion_window": "31d"}, "completion_window", "invalid_value"),
        ({"metadata": []}, "metadata", "invalid_type"),
        ({"metadata": {"k": 5}}, "metadata.k", "invalid_type"),
        ({"metadata": {"k" * 65: ""}}, f"metadata.{'k' * 64}", "string_above_max_length"),
        ({"metadata": {"k": "v" * 513}}, "metadata.k", "string_above_max_length"),
        (
            {"metadata": {str(n): "" for n in range(17)}},
            "metadata",
            "object_above_max_properties",
        ),
        ({"output_expires_after": 5}, "output_expires_after", "invalid_type"),
        ({"output_expires_after": {}}, "output_expires_after.anchor", "missing_required_parameter"),
        (
            {"output_expires_after": {"anchor": "created_at", "seconds": 1}},
            "output_expires_after.seconds",
            "integer_below_min_value",
        ),
    ],
)
def test_faults_name_their_member(members: dict[str, Any], param: str, code: str) -> None:
    """A refused create says which member and why."""
    with pytest.raises(InvalidRequest) as refused:
        _parse(**members)
    assert (refused.value.param, refused.value.code) == (param, code)


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"\xff"])
def test_a_body_that_is_no_object_is_refused(body: bytes) -> None:
    """400, whatever came."""
    with pytest.raises(InvalidRequest):
        parse_batch_create(body, 3600)


def test_the_object_has_nulls_for_what_is_not() -> None:
    """No member is missing."""
    fixed = {
        "id": "batch_1",
        "endpoint": "/v1/embeddings",
        "input_file_id": "file-1",
        "completion_window": "24h",
        "status": "validating",
        "created_at": 1_700_000_000,
        "errors": (),
    }
    batch = checked(batch_object(fixed, counts=Counts(), usage=Usage()), "batch")
    nulls = {"errors", "output_file_id", "error_file_id", "metadata", "model", "headway", *TIMES}
    assert {name for name, value in batch.items() if value is None} == nulls
    assert batch["request_counts"] == {"total": 0, "completed": 0, "failed": 0}
    assert batch["usage"]["total_tokens"] == 0
