"""Tables on standard output: names are never cut."""

from collections.abc import Iterable, Sequence

_WIDE = 10_000


def show(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table: as wide as it is into a file or pipe, folded to fit on a terminal."""
    from rich.console import Console
    from rich.table import Table

    table = Table()
    for name in columns:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*row)
    console = Console(markup=False, highlight=False)
    if not console.is_terminal:
        console = Console(markup=False, highlight=False, width=_WIDE)
    console.print(table)
