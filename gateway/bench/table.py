"""The demo's result as tables for a terminal."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from gateway.bench.checks import Check
from gateway.bench.timing import Latency, Spread
from gateway.bench.whole import show_whole

if TYPE_CHECKING:  # the demo alone needs it, and what it imports
    from gateway.bench.measured import Measured


def show_result(console: Console, measured: "Measured") -> None:
    """Latency and throughput of the arms."""
    table = Table(title="Interactive calls and the batch, on one engine", title_justify="left")
    for name in ("", "alone", "naive", "Headway"):
        table.add_column(name, justify="right" if name else "left", no_wrap=True)
    arms = (measured.alone, measured.naive, measured.shared)
    for name, kind, rank in (
        ("TTFT p50", "ttft", "p50"),
        ("TTFT p99", "ttft", "p99"),
        ("inter-token delay p50", "itl", "p50"),
        ("inter-token delay p99", "itl", "p99"),
    ):
        table.add_row(name, *(_milliseconds(getattr(_spread(arm, kind), rank)) for arm in arms))
    table.add_row("interactive calls measured", *(str(arm.ttft.count) for arm in arms))
    table.add_section()
    naive, shared = measured.flood, measured.shared_batch
    table.add_row(
        "offline output tok/s",
        "-",
        f"{naive.tokens_per_second:.0f}",
        f"{shared.tokens_per_second:.0f}",
    )
    table.add_row(
        "rows in the engine, mean", "-", f"{measured.flood_rows:.0f}", f"{measured.shared_rows:.0f}"
    )
    show_whole(console, table)


def show_speed(console: Console, measured: "Measured") -> None:
    """Batch size 1 against the batch."""
    table = Table(title="The batch alone: same prompts, same output length", title_justify="left")
    for name in ("", "batch size 1", "batch"):
        table.add_column(name, justify="right" if name else "left", no_wrap=True)
    table.add_row(
        "output tok/s",
        f"{measured.single_speed:.0f}",
        f"{measured.batch.tokens_per_second:.0f}",
    )
    table.add_row("rows in the engine, mean", "1", f"{measured.batch_rows:.0f}")
    table.add_row(
        f"time for {measured.batch.rows} requests",
        f"{measured.single_seconds:.0f} s",
        f"{measured.batch.seconds:.0f} s",
    )
    show_whole(console, table)


def show_bill(console: Console, measured: "Measured") -> None:
    """Tokens per lane as metered and as answered, and the price of batch size 1."""
    table = Table(title="The bill", title_justify="left")
    for name in ("lane", "tokens in", "tokens out", "sum of usage in all answers"):
        table.add_column(name, justify="left" if name == "lane" else "right", no_wrap=True)
    for lane, usage in measured.answered.items():
        metered = measured.metered[lane]
        table.add_row(
            lane,
            f"{metered.prompt:,}",
            f"{metered.completion:,}",
            f"{usage.prompt:,} + {usage.completion:,}",
        )
    show_whole(console, table)
    factor = measured.single_seconds / measured.batch.seconds
    console.print(
        f"The same engine would have needed {measured.single_seconds:.0f} s at batch size 1 for "
        f"the batch that took {measured.batch.seconds:.0f} s: {factor:.1f} times the cost.\n"
    )


def show_checks(console: Console, checks: Sequence[Check]) -> None:
    """Each promise with what was found."""
    for check in checks:
        mark = "[green]✓[/]" if check.ok else "[red]✗[/]"
        console.print(f"{mark} {check.promise}: {check.found}", highlight=False)


def _spread(latency: Latency, kind: str) -> Spread:
    return latency.ttft if kind == "ttft" else latency.itl


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:,.0f} ms"
