"""Arms side by side: as a table, and as JSON."""

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table

from gateway.bench.coserve.figures import Spread
from gateway.bench.whole import show_in_parts

_NAME_WIDTH = 13
_ROWS = (
    ("calls", "calls", ",.0f"),
    ("calls that failed", "failed", ",.0f"),
    ("TTFT p50, ms", "ttft_p50", ",.0f"),
    ("TTFT p95, ms", "ttft_p95", ",.0f"),
    ("TTFT p99, ms", "ttft_p99", ",.0f"),
    ("times alone", "interference", ".2f"),
    ("ITL p50, ms", "itl_p50", ".1f"),
    ("ITL p99, ms", "itl_p99", ".1f"),
    ("SLO met", "slo", ".1%"),
    ("job start, ms", "job_start", ",.0f"),
    ("offline tok/s", "offline_tokens", ",.0f"),
    ("offline output tok/s", "offline_output", ",.0f"),
    ("harvest", "harvest", ".2f"),
    ("token-work utilisation", "utilisation", ".0%"),
    ("cost per M, interactive", "cost_interactive", ".3f"),
    ("cost per M, offline", "cost_offline", ".3f"),
)


def show_arms(console: Console, title: str, arms: Mapping[str, Mapping[str, Spread]]) -> None:
    """A column an arm; below each mean the least and the most of the slices.

    Where not all of them fit, several tables with the same lines.
    """
    told = [row for row in _ROWS if any(not math.isnan(arm[row[1]].mean) for arm in arms.values())]

    def table_of(names: Sequence[str]) -> Table:
        table = Table(title=title, title_justify="left")
        table.add_column("", no_wrap=True)
        for name in names:
            table.add_column(_folded(name), justify="right", no_wrap=True)
        for label, figure, form in told:
            table.add_row(label, *(cell(arms[name][figure], form) for name in names))
        return table

    show_in_parts(console, table_of, list(arms))


def _folded(name: str) -> str:
    return "\n".join(textwrap.wrap(name, _NAME_WIDTH, break_long_words=False))


def cell(figure: Spread, form: str) -> str:
    """The mean, and below it the spread where there is one."""
    if math.isnan(figure.mean):
        return "-"
    mean, low, high = (format(value, form) for value in (figure.mean, figure.low, figure.high))
    return mean if low == high else f"{mean}\n{low}-{high}"


def as_json(results: Mapping[str, Mapping[str, Mapping[str, Spread]]]) -> dict[str, Any]:
    """All figures with their spread; what is not a number is null."""
    return {
        scene: {
            arm: {name: _plain(figure) for name, figure in figures.items()}
            for arm, figures in arms.items()
        }
        for scene, arms in results.items()
    }


def _plain(figure: Spread) -> dict[str, float] | None:
    return None if math.isnan(figure.mean) else asdict(figure)
