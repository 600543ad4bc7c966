"""The demo's tables."""

import io

from rich.console import Console

from gateway.bench.checks import check_all
from gateway.bench.table import show_bill, show_checks, show_result, show_speed
from tests.support.measured import good


def test_every_figure_is_shown_on_a_narrow_terminal() -> None:
    """The tables hold all arms and lanes within 80 columns."""
    console = Console(file=io.StringIO(), width=80)
    measured = good()
    for show in (show_speed, show_result, show_bill):
        show(console, measured)
    show_checks(console, check_all(measured))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    for expected in ("5,000 ms", "naive", "Headway", "6,400", "3.2 times the cost", "✓"):
        assert expected in text
    assert max(len(line) for line in text.splitlines()) <= 80
