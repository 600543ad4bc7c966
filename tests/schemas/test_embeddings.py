"""Embeddings requests."""

from typing import Any

import orjson
import pytest

from gateway.core.errors import InvalidRequest
from gateway.schemas.embeddings import MAX_INPUTS, parse_embeddings


def parse(**members: Any) -> Any:
    """A request with these members."""
    return parse_embeddings(orjson.dumps({"model": "m", "input": "a", **members}))


def test_items_are_inputs() -> None:
    """Inputs are counted; an answer is never streamed."""
    assert parse(input=["a", "b"]).items == 2
    assert not parse(stream=True, stream_options={"x": 1}).stream


@pytest.mark.parametrize(
    "members",
    [
        {"input": ""},
        {"input": []},
        {"input": ["a", ""]},
        {"input": ["a"] * (MAX_INPUTS + 1)},
        {"input": None},
        {"encoding_format": "hex"},
        {"dimensions": 0},
    ],
)
def test_refusals(members: dict[str, Any]) -> None:
    """Empty or too many inputs and unknown encodings are refused."""
    with pytest.raises(InvalidRequest):
        parse(**members)


def test_a_tier_is_a_text() -> None:
    """Any other type is the caller's fault."""
    with pytest.raises(InvalidRequest) as refused:
        parse_embeddings(b'{"model":"m","input":"x","service_tier":["x"]}')
    assert refused.value.param == "service_tier"
