"""Errors in the OpenAI shape."""

import pytest

from gateway.core.errors import HeadwayError, InvalidType, ModelNotFound, UpstreamFailed
from gateway.worker.errors import error_body, status_of


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (InvalidType("no", param="n"), 400),
        (ModelNotFound("no", param="model"), 404),
        (UpstreamFailed("no", target="local", code="numerical_error"), 500),
    ],
)
def test_every_error_has_all_four_members(error: HeadwayError, status: int) -> None:
    """Message, type, param and code, and the status of its kind."""
    assert status_of(error) == status
    assert set(error_body(error)["error"]) == {"message", "type", "param", "code"}
