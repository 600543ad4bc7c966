"""Tables that are never cut: a figure without its last digits is another figure."""

from collections.abc import Callable, Sequence

from rich.console import Console
from rich.table import Table

_UNBOUNDED = 10_000


def show_whole(console: Console, table: Table) -> None:
    """Print ``table`` as wide as it is; a terminal that is narrower folds its lines."""
    table.width = width_of(console, table)
    console.print(table, crop=False, soft_wrap=True)


def show_in_parts(
    console: Console, build: Callable[[Sequence[str]], Table], columns: Sequence[str]
) -> None:
    """One table below the other, each with as many of ``columns`` as fit, and one at least."""
    part: list[str] = []
    for column in columns:
        if part and width_of(console, build([*part, column])) > console.width:
            show_whole(console, build(part))
            part = []
        part.append(column)
    show_whole(console, build(part))


def width_of(console: Console, table: Table) -> int:
    """Columns of a terminal that it takes when nothing is cut."""
    return console.measure(table, options=console.options.update(width=_UNBOUNDED)).maximum
