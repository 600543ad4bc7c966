"""Numbers on the command line."""

import math

import pytest
import typer

from gateway.bench.numbers import a_number


def test_what_is_not_a_number_is_refused() -> None:
    """Everything else passes as it is."""
    assert [a_number(value) for value in (None, 0.0, 5.5)] == [None, 0.0, 5.5]
    with pytest.raises(typer.BadParameter):
        a_number(math.nan)
