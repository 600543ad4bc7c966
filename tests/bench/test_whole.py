"""Tables that are never cut."""

import io
from collections.abc import Sequence

import pytest
from rich.console import Console
from rich.table import Table

from gateway.bench.whole import show_in_parts, show_whole, width_of

FIGURES = {f"arm {number}": f"{number}8,765-98,765" for number in range(1, 7)}


def _table(names: Sequence[str]) -> Table:
    table = Table(title="load")
    table.add_column("")
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_row("tok/s", *(FIGURES[name] for name in names))
    return table


def _printed(width: int) -> tuple[Console, io.StringIO]:
    text = io.StringIO()
    return Console(file=text, width=width), text


@pytest.mark.parametrize("width", [20, 80, 200])
def test_each_figure_is_whole_at_any_width(width: int) -> None:
    """In several tables where one is too wide; no wider than the console where that can be."""
    console, text = _printed(width)
    show_in_parts(console, _table, list(FIGURES))
    assert all(text.getvalue().count(figure) == 1 for figure in FIGURES.values())
    assert text.getvalue().count("load") == {20: 6, 80: 2, 200: 1}[width]
    assert width < 80 or max(map(len, text.getvalue().splitlines())) <= width


def test_one_table_is_as_wide_as_it_is() -> None:
    """Whatever the console thinks of it."""
    console, text = _printed(10)
    wide = _table(list(FIGURES))
    show_whole(console, wide)
    assert all(figure in text.getvalue() for figure in FIGURES.values())
    lines = text.getvalue().splitlines()
    assert max(map(len, lines)) == width_of(console, wide)
