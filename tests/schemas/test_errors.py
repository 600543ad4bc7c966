"""The error object."""

from gateway.schemas.errors import error_body


def test_all_members() -> None:
    """All four members are always there."""
    assert error_body("m", "t") == {
        "error": {"message": "m", "type": "t", "param": None, "code": None}
    }
