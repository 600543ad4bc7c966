"""Numbers on the command line of benchmarks: which can be meant."""

import math

import typer

#: Rows, slots, tokens of a step: more than any engine has.
MOST = 1_000_000
#: Calls of a run; each is kept until the end.
MOST_CALLS = 1_000_000


def a_number(value: float | None) -> float | None:
    """As it was given. Raises BadParameter for NaN, which lies within any bounds."""
    if value is not None and math.isnan(value):
        raise typer.BadParameter("nan is not a number.")
    return value
