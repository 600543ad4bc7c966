"""Chat requests."""

from typing import Any

import orjson
import pytest

from gateway.core.errors import InvalidRequest
from gateway.core.usage import MOST_TOKENS
from gateway.schemas.chat import parse_chat
from gateway.schemas.requests import ModelRequest

GOOD: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


def parse(**members: Any) -> ModelRequest:
    """A good request with other members."""
    return parse_chat(orjson.dumps({**GOOD, **members}))


def test_what_a_request_tells() -> None:
    """Model, stream, usage wish, choices, tokens and tier."""
    request = parse(
        stream=True,
        stream_options={"include_usage": True},
        n=2,
        max_tokens=10,
        service_tier="flex",
        vendor={"x": 1},
    )
    assert (request.model, request.stream, request.wants_usage) == ("m", True, True)
    assert (request.choices, request.max_completion, request.tier) == (2, 20, "flex")
    assert request.members["vendor"] == {"x": 1}


def test_null_counts_as_not_given() -> None:
    """Optional members may be null."""
    request = parse(stream=None, n=None, temperature=None, stream_options=None, metadata=None)
    assert not request.stream
    assert request.choices == 1


@pytest.mark.parametrize(
    ("members", "code", "param"),
    [
        ({"model": None}, "missing_required_parameter", "model"),
        ({"model": 5}, "invalid_type", "model"),
        ({"model": ""}, "invalid_value", "model"),
        ({"messages": None}, "missing_required_parameter", "messages"),
        ({"messages": "x"}, "invalid_type", "messages"),
        ({"messages": []}, "empty_array", "messages"),
        ({"messages": ["x"]}, "invalid_type", "messages[0]"),
        ({"messages": [{"content": "x"}]}, "missing_required_parameter", "messages[0].role"),
        ({"messages": [{"role": 1}]}, "invalid_type", "messages[0].role"),
        ({"stream": "yes"}, "invalid_type", "stream"),
        ({"n": 0}, "integer_below_min_value", "n"),
        ({"n": 129}, "integer_above_max_value", "n"),
        ({"n": True}, "invalid_type", "n"),
        ({"n": 1.5}, "invalid_type", "n"),
        ({"temperature": 2.1}, "decimal_above_max_value", "temperature"),
        ({"top_p": -1}, "decimal_below_min_value", "top_p"),
        ({"top_logprobs": 21}, "integer_above_max_value", "top_logprobs"),
        ({"max_tokens": 0}, "integer_below_min_value", "max_tokens"),
        ({"max_tokens": 2**31}, "integer_above_max_value", "max_tokens"),
        ({"max_completion_tokens": 2**64 - 1}, "integer_above_max_value", "max_completion_tokens"),
        ({"stop": ["a"] * 5}, "array_above_max_length", "stop"),
        ({"stop": [1]}, "invalid_type", "stop"),
        ({"service_tier": "gold"}, "invalid_value", "service_tier"),
        ({"metadata": []}, "invalid_type", "metadata"),
        ({"metadata": {"k": 1}}, "invalid_type", "metadata.k"),
        ({"metadata": {"k" * 65: "v"}}, "invalid_value", "metadata"),
        ({"metadata": {str(n): "v" for n in range(17)}}, "invalid_value", "metadata"),
        ({"stream_options": {}}, "invalid_value", "stream_options"),
        ({"stream": True, "stream_options": 1}, "invalid_type", "stream_options"),
    ],
)
def test_refusals(members: dict[str, Any], code: str, param: str) -> None:
    """Each fault has its code and names its member."""
    with pytest.raises(InvalidRequest) as caught:
        parse(**members)
    assert (caught.value.code, caught.value.param) == (code, param)


def test_the_longest_answer_is_a_figure_that_can_be_kept() -> None:
    """Choices and tokens multiply to a bounded number."""
    assert parse(n=128, max_tokens=2**31 - 1).max_completion == MOST_TOKENS
