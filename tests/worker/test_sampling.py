"""Sampling members, checked."""

from typing import Any

import pytest

from gateway.core.errors import InvalidRequest
from gateway.worker.sampling import alternatives, read_sampling


def test_absent_and_null_are_the_defaults() -> None:
    """Null is what clients send for 'not set'."""
    assert read_sampling({"temperature": None, "stop": None}, None) == read_sampling({}, None)


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"temperature": 2.1}, "temperature"),
        ({"temperature": "hot"}, "temperature"),
        ({"temperature": True}, "temperature"),
        ({"top_p": -0.1}, "top_p"),
        ({"seed": 1.5}, "seed"),
        ({"stop": [1]}, "stop"),
        ({"stop": ["x"] * 17}, "stop"),
        ({"logit_bias": [1]}, "logit_bias"),
        ({"logit_bias": {"a": 1}}, "logit_bias"),
        ({"presence_penalty": 3}, "presence_penalty"),
        ({"temperature": float("nan")}, "temperature"),
    ],
)
def test_a_wrong_member_is_named(body: dict[str, Any], param: str) -> None:
    """The error says which member it is about."""
    with pytest.raises(InvalidRequest) as caught:
        read_sampling(body, None)
    assert caught.value.param == param


def test_alternatives_need_logprobs() -> None:
    """top_logprobs alone asks for nothing; logprobs alone reports the chosen token."""
    assert alternatives({"top_logprobs": 3}) is None
    assert alternatives({"logprobs": True}) == 0
    assert alternatives({"logprobs": True, "top_logprobs": 3}) == 3
