"""What all requests have in common."""

import pytest

from gateway.core.errors import InvalidRequest, MissingParameter
from gateway.schemas.requests import read_object, required


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b"\xff", b'"x"', b"{} {}", b"NaN"])
def test_only_objects_are_bodies(body: bytes) -> None:
    """Everything else is refused without a param or code, and without repeating it."""
    with pytest.raises(InvalidRequest) as caught:
        read_object(body)
    assert (caught.value.param, caught.value.code) == (None, None)


def test_required() -> None:
    """Null counts as missing."""
    assert required({"a": 0}, "a") == 0
    with pytest.raises(MissingParameter):
        required({"a": None}, "a")


@pytest.mark.parametrize("levels", [200, 254, 1000, 5000])
def test_a_body_nested_too_deeply(levels: int) -> None:
    """It is refused as that, whether it could be read or not."""
    with pytest.raises(InvalidRequest, match="nested too deeply"):
        read_object(b'{"x":' + b"[" * levels + b"]" * levels + b"}")
    assert read_object(b'{"x":' + b"[" * 199 + b"]" * 199 + b"}")
