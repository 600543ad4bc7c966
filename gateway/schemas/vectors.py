"""Vectors of an embeddings answer, as numbers or as base64 of little-endian 32-bit floats."""

import base64
import sys
from array import array
from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]
#: What vectors of other types than the API's come to.
MALFORMED = (AttributeError, OverflowError, TypeError, ValueError)
_BASE64 = "base64"


def as_wanted(members: Mapping[str, Any], answer: Mapping[str, Any]) -> Json | None:
    """``answer`` with its vectors as the request wants them; None when they are.

    Servers exist that know one of both forms. Raises one of MALFORMED for what are no vectors.
    """
    form, other = (str, list) if members.get("encoding_format") == _BASE64 else (list, str)
    rows = answer["data"]
    if not any(isinstance(row.get("embedding"), other) for row in rows):
        return None
    turn = packed if form is str else unpacked
    return {**answer, "data": [_row(row, other, turn) for row in rows]}


def _row(row: Mapping[str, Any], other: type, turn: Any) -> Json:
    vector = row.get("embedding")
    return {**row, "embedding": turn(vector) if isinstance(vector, other) else vector}


def packed(vector: list[float]) -> str:
    """Numbers as base64."""
    return base64.b64encode(_little(array("f", vector)).tobytes()).decode()


def unpacked(text: str) -> list[float]:
    """Base64 as numbers."""
    numbers = array("f")
    numbers.frombytes(base64.b64decode(text, validate=True))
    return _little(numbers).tolist()


def _little(numbers: "array[float]") -> "array[float]":
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
