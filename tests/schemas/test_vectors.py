"""Both forms of a vector."""

import base64
import struct
from typing import Any

import pytest

from gateway.schemas.vectors import MALFORMED, as_wanted, packed, unpacked

NUMBERS = [0.5, -1.25, 3.0]
TEXT = base64.b64encode(struct.pack("<3f", *NUMBERS)).decode()


def _answer(vector: Any) -> dict[str, Any]:
    row = {"object": "embedding", "index": 0, "embedding": vector}
    return {"object": "list", "model": "m", "data": [row, {**row, "index": 1}]}


def test_there_and_back() -> None:
    """Little-endian, 32 bits."""
    assert packed(NUMBERS) == TEXT
    assert unpacked(TEXT) == NUMBERS


def test_what_is_as_it_was_asked_for() -> None:
    """It is left alone."""
    assert as_wanted({}, _answer(NUMBERS)) is None
    assert as_wanted({"encoding_format": "float"}, _answer(NUMBERS)) is None
    assert as_wanted({"encoding_format": "base64"}, _answer(TEXT)) is None


def test_what_is_not() -> None:
    """Each vector is turned, all else stays."""
    assert as_wanted({"encoding_format": "base64"}, _answer(NUMBERS)) == _answer(TEXT)
    assert as_wanted({"encoding_format": None}, _answer(TEXT)) == _answer(NUMBERS)


@pytest.mark.parametrize(
    ("form", "vector"), [("base64", ["x"]), ("base64", [[1]]), ("float", "?"), ("float", "AAA=")]
)
def test_what_are_no_vectors(form: str, vector: Any) -> None:
    """One of the errors that callers expect."""
    with pytest.raises(MALFORMED):
        as_wanted({"encoding_format": form}, _answer(vector))
