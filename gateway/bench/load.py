"""Closed- and open-loop load of streamed chat calls on any OpenAI-compatible server."""

import asyncio
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from openai import APIError, AsyncOpenAI
from rich.console import Console
from rich.table import Table

from gateway.bench.corpus import prompts
from gateway.bench.interactive import timed_call
from gateway.bench.timing import Latency, Spread, Timing, total
from gateway.bench.whole import show_whole

MAX_PROMPTS = 256


@dataclass(frozen=True, slots=True)
class Load:
    """What to send. With ``rate`` calls start at that pace per second, else when one has ended."""

    base_url: str
    model: str
    api_key: str
    calls: int
    concurrency: int
    rate: float | None
    max_tokens: int


@dataclass(frozen=True, slots=True)
class LoadReport:
    """What came back; ``failures`` counts calls by kind of error."""

    timings: list[Timing]
    failures: Mapping[str, int]
    seconds: float

    @property
    def tokens_per_second(self) -> float:
        """Aggregate output speed."""
        return total(self.timings).completion / self.seconds


async def run_load(load: Load) -> LoadReport:
    """Make all calls, without retries. A failed call is counted and does not end the run."""
    now = asyncio.get_running_loop().time
    bodies = [p.body(load.model, load.max_tokens) for p in prompts(min(load.calls, MAX_PROMPTS))]
    places = asyncio.Semaphore(load.calls if load.rate else load.concurrency)
    failures: Counter[str] = Counter()
    timings: list[Timing] = []

    async def call(client: AsyncOpenAI, number: int) -> None:
        if load.rate:
            await asyncio.sleep(number / load.rate)
        async with places:
            try:
                timings.append(await timed_call(client, bodies[number % len(bodies)]))
            except APIError as error:
                failures[type(error).__name__] += 1

    async with AsyncOpenAI(base_url=load.base_url, api_key=load.api_key, max_retries=0) as client:
        started = now()
        async with asyncio.TaskGroup() as group:
            for number in range(load.calls):
                group.create_task(call(client, number))
    return LoadReport(timings, failures, now() - started)


def show_load(console: Console, report: LoadReport) -> None:
    """The report as a table."""
    latency, usage = Latency.of(report.timings), total(report.timings)
    table = Table("", "p50", "p99", title="Streamed chat calls", title_justify="left")
    table.add_row("TTFT", *_both(latency.ttft))
    table.add_row("inter-token delay", *_both(latency.itl))
    show_whole(console, table)
    console.print(
        f"{len(report.timings)} calls, {usage.prompt:,} tokens in, {usage.completion:,} out in "
        f"{report.seconds:.1f} s: {report.tokens_per_second:.0f} output tok/s"
    )
    for name, count in report.failures.items():
        console.print(f"[red]{count} failed: {name}[/]")


def _both(spread: Spread) -> tuple[str, str]:
    return _ms(spread.p50), _ms(spread.p99)


def _ms(seconds: float) -> str:
    return "-" if math.isnan(seconds) else f"{seconds * 1000:,.1f} ms"
