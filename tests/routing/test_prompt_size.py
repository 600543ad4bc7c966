"""The length of a prompt."""

import pytest

from gateway.routing.prompt_size import least_tokens


@pytest.mark.parametrize(
    ("members", "tokens"),
    [
        ({"prompt": "x" * 60}, 10),
        ({"prompt": ["x" * 30, "y" * 30]}, 10),
        ({"input": "x" * 12}, 2),
        ({"messages": [{"content": [{"type": "text", "text": "x" * 12}, {"image_url": "x"}]}]}, 2),
        ({"messages": [{"content": None}, 7]}, 0),
        ({}, 0),
    ],
)
def test_the_fewest_tokens_of_a_prompt(members: dict[str, object], tokens: int) -> None:
    """Texts count, pictures do not."""
    assert least_tokens(members) == tokens


def test_token_arrays_are_not_looked_through() -> None:
    """They have no texts; there may be millions of numbers."""
    assert least_tokens({"input": [[1, 2], "six characters"]}) == 2
    assert least_tokens({"prompt": [5] * 1000}) == 0
