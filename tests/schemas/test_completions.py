"""Completions requests."""

from typing import Any

import orjson
import pytest

from gateway.core.errors import InvalidRequest
from gateway.schemas.completions import parse_completion


def items(prompt: Any, **members: Any) -> tuple[int, int]:
    """Prompts and choices of a request."""
    request = parse_completion(orjson.dumps({"model": "m", "prompt": prompt, **members}))
    return request.items, request.choices


@pytest.mark.parametrize(
    ("prompt", "count"), [("a", 1), (["a", "b"], 2), ([1, 2, 3], 1), ([[1], [2, 3]], 2), ([""], 1)]
)
def test_forms_of_the_prompt(prompt: Any, count: int) -> None:
    """A text, texts, tokens and token arrays are told apart."""
    assert items(prompt, n=2) == (count, 2 * count)


@pytest.mark.parametrize("prompt", [[], [[]], 5, {}, ["a", 1], [1, "a"], [-1], [True], [[1], "a"]])
def test_what_is_no_prompt(prompt: Any) -> None:
    """Everything else is refused by name."""
    with pytest.raises(InvalidRequest) as caught:
        items(prompt)
    assert caught.value.param == "prompt"
