"""The main job in front of the user: interactive alone, a batch, both at once, the bill."""

import contextlib
from collections.abc import Callable, Iterator, Sequence

from openai import AsyncOpenAI
from openai.types import Batch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from gateway.bench.arms import Arms, Size
from gateway.bench.batch_run import BatchResult
from gateway.bench.bill import metered_by_lane
from gateway.bench.checks import Check, check_all
from gateway.bench.gauge import Gauge
from gateway.bench.measured import Measured
from gateway.bench.server import Server, serving
from gateway.bench.table import show_bill, show_checks, show_result, show_speed
from gateway.bench.timing import Latency, Timing, total
from gateway.core.errors import BenchmarkFailed

GOODBYE = """
Keep a server running:            [bold]headway serve[/]   (in a clone: make serve)
It prints its address and key; then any OpenAI client works, for example:

  from openai import OpenAI
  client = OpenAI(base_url="http://127.0.0.1:8000/v1", api_key="…")
  client.chat.completions.create(model="{model}", messages=[…])
"""


async def run_demo(console: Console, size: Size | None = None) -> list[Check]:
    """Run everything on a server of its own and show it; the checks say whether it held.

    Leaves no process and no file behind. Raises BenchmarkFailed when a part does not work at all.
    """
    console.print("[bold]1.[/] headway serve: gateway, queue, dispatcher and model worker")
    async with serving() as server, Gauge(server.worker_url) as gauge:
        client = AsyncOpenAI(base_url=server.url, api_key=server.api_key, max_retries=0)
        async with client:
            arms = Arms(client, server.worker_url, await _first_model(client), size)
            await arms.warm_up()
            measured = await _measure(console, arms, server, gauge)
    console.print()
    show_speed(console, measured)
    show_result(console, measured)
    show_bill(console, measured)
    checks = check_all(measured)
    show_checks(console, checks)
    console.print(GOODBYE.format(model=arms.model), highlight=False)
    return checks


async def _measure(console: Console, arms: Arms, server: Server, gauge: Gauge) -> Measured:
    console.print("[bold]2.[/] The batch's requests one at a time, then interactive calls alone")
    single = await arms.one_at_a_time()
    speed = _speed(single)
    rows = arms.fit(speed)
    alone = await arms.interactive_alone()
    console.print(f"[bold]3.[/] An offline batch of {rows} requests through /v1/batches")
    with _progress(console, gauge, rows) as on_progress:
        batch = await arms.batch(on_progress)
    console.print(f"   first answer: {batch.sample[:90]!r}…", markup=False)
    console.print("[bold]4.[/] Both at once without lanes: all requests thrown at the engine")
    naive = await arms.naive()
    console.print("[bold]5.[/] Both at once through Headway")
    with _progress(console, gauge, rows) as on_progress:
        both = await arms.both(on_progress)
    answered = {
        "interactive": total([*alone, *single, *both.interactive]),
        "batch": batch.usage + both.batch.usage,
    }
    return Measured(
        alone=Latency.of(alone),
        naive=Latency.of(naive.interactive),
        shared=Latency.of(both.interactive),
        single_speed=speed,
        batch=batch,
        shared_batch=both.batch,
        flood=naive.flood,
        batch_rows=_rows(gauge, batch),
        shared_rows=_rows(gauge, both.batch),
        flood_rows=gauge.occupancy().middle_half(naive.flood.started_at, naive.flood.ended_at),
        metered=await metered_by_lane(server, answered),
        answered=answered,
    )


async def _first_model(client: AsyncOpenAI) -> str:
    models = await client.models.list()
    if not models.data:
        raise BenchmarkFailed("the gateway lists no model")
    return models.data[0].id


def _speed(single: Sequence[Timing]) -> float:
    return total(single).completion / sum(timing.duration for timing in single)


def _rows(gauge: Gauge, batch: BatchResult) -> float:
    return gauge.occupancy().middle_half(batch.started_at, batch.ended_at)


@contextlib.contextmanager
def _progress(console: Console, gauge: Gauge, rows: int) -> Iterator[Callable[[Batch], None]]:
    columns = (
        TextColumn("   "),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[running]:.0f} rows in the engine"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("batch", total=rows, running=0.0)

        def on_progress(batch: Batch) -> None:
            counts = batch.request_counts
            done = counts.completed + counts.failed if counts else 0
            progress.update(task, completed=done, running=gauge.latest)

        yield on_progress
