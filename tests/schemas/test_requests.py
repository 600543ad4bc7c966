"""What all requests have in common."""

import orjson
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


def test_a_large_body() -> None:
    """It is read as any other; long integers stay, and broken, deep and endless ones are told."""
    messages = [{"role": "user", "content": "x"}] * 20_000
    text = orjson.dumps({"messages": messages, "seed": 0}).replace(b":0}", b":%d}" % 10**25)
    assert read_object(text) == {"messages": messages, "seed": 10**25}
    with pytest.raises(InvalidRequest, match="valid JSON"):
        read_object(text[:-2])
    deep = text.replace(b":%d}" % 10**25, b":%b}" % (b"[" * 2000 + b"]" * 2000))
    with pytest.raises(InvalidRequest, match="nested too deeply"):
        read_object(deep)
    with pytest.raises(InvalidRequest, match="1000000 values"):
        read_object(b'{"x":[%b]}' % b",".join([b"1"] * 1_000_002))
