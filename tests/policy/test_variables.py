"""Variables inside strings."""

import pytest

from gateway.policy.variables import expand

KNOWN = {"A": "1", "EMPTY": "", "URL": "http://x"}


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("plain", "plain"),
        ("${A}", "1"),
        ("${URL}/v${A}", "http://x/v1"),
        ("${EMPTY}", ""),
        ("${EMPTY:-d}", "d"),
        ("${NONE:-d}", "d"),
        ("${NONE:-}", ""),
        ("$${A}", "${A}"),
        ("$5", "$5"),
    ],
)
def test_what_is_filled_in(text: str, result: str) -> None:
    """As a shell does it, in braces only."""
    assert expand(text, KNOWN.get) == result


@pytest.mark.parametrize("text", ["${A", "${}", "${1A}", "${A:?x}"])
def test_what_is_no_variable(text: str) -> None:
    """A slip is refused, not passed on as text."""
    with pytest.raises(ValueError, match="is written"):
        expand(text, KNOWN.get)


def test_cfg_05_an_unset_variable_is_named() -> None:
    """The message says which one."""
    with pytest.raises(ValueError, match="UP_KEY is not set"):
        expand("x${UP_KEY}", KNOWN.get)
