"""The arms of the demo: the same prompts, lengths and arrivals each time."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from openai import AsyncOpenAI
from openai.types import Batch

from gateway.bench.batch_run import BatchResult, input_file, run_batch
from gateway.bench.corpus import prompts
from gateway.bench.interactive import arrivals, one_by_one, timed_call
from gateway.bench.naive import Flood, flood
from gateway.bench.timing import Timing

MAX_TOKENS = 64
MIN_ROWS, MAX_ROWS, ROW_STEP = 96, 192, 32
BATCH_SECONDS = 40.0
SINGLE_CALLS = 10
INTERACTIVE_CALLS = 64
ALONE_CALLS = 16
INTERACTIVE_TOKENS = 32
EVERY_SECONDS = 0.75


@dataclass(frozen=True, slots=True)
class NaiveRun:
    """Interactive calls and the flood they met."""

    interactive: list[Timing]
    flood: Flood


@dataclass(frozen=True, slots=True)
class BothRun:
    """Interactive calls and the batch they met."""

    interactive: list[Timing]
    batch: BatchResult


class Arms:
    """Runs one arm at a time; call ``size`` before the arms with offline work."""

    def __init__(self, client: AsyncOpenAI, worker_url: str, model: str) -> None:
        self.model = model
        self._client = client
        self._worker_url = worker_url
        chosen = prompts(MAX_ROWS + INTERACTIVE_CALLS)
        self._offline = chosen[:MAX_ROWS]
        self._interactive = [p.body(model, INTERACTIVE_TOKENS) for p in chosen[MAX_ROWS:]]

    async def warm_up(self) -> None:
        """One call past the gateway, so that no arm pays for the engine's first step."""
        async with self._worker() as worker:
            await timed_call(worker, self._interactive[0])

    async def interactive_alone(self) -> list[Timing]:
        """Interactive calls on an idle engine."""
        return await arrivals(
            self._client, self._interactive[:ALONE_CALLS], EVERY_SECONDS, asyncio.Event()
        )

    async def one_at_a_time(self) -> list[Timing]:
        """Batch size 1: the first of the batch's own requests, one after the other."""
        return await one_by_one(self._client, self._bodies()[:SINGLE_CALLS])

    def size(self, single_speed: float) -> int:
        """Choose how many offline requests this machine gets: 96 to 192, about 40 s of work.

        ``single_speed`` is output tokens per second at batch size 1.
        """
        fitting = int(BATCH_SECONDS * 3 * single_speed / MAX_TOKENS)
        rows = max(MIN_ROWS, min(MAX_ROWS, fitting // ROW_STEP * ROW_STEP))
        self._offline = self._offline[:rows]
        return rows

    async def batch(self, on_progress: Callable[[Batch], None]) -> BatchResult:
        """The offline requests as a batch, nothing beside it."""
        content = input_file(self._offline, self.model, MAX_TOKENS)
        return await run_batch(self._client, content, on_progress)

    async def naive(self) -> NaiveRun:
        """The same requests and interactive calls straight at the engine, without lanes."""
        done = asyncio.Event()
        async with self._worker() as worker, asyncio.TaskGroup() as group:
            offline = group.create_task(flood(self._worker_url, self._bodies()))
            offline.add_done_callback(lambda _: done.set())
            calls = group.create_task(arrivals(worker, self._interactive, EVERY_SECONDS, done))
        return NaiveRun(calls.result(), offline.result())

    async def both(self, on_progress: Callable[[Batch], None]) -> BothRun:
        """The batch through Headway, with the same interactive calls beside it."""
        done = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            offline = group.create_task(self.batch(on_progress))
            offline.add_done_callback(lambda _: done.set())
            calls = group.create_task(
                arrivals(self._client, self._interactive, EVERY_SECONDS, done)
            )
        return BothRun(calls.result(), offline.result())

    def _bodies(self) -> list[dict[str, Any]]:
        return [prompt.body(self.model, MAX_TOKENS) for prompt in self._offline]

    def _worker(self) -> AsyncOpenAI:
        return AsyncOpenAI(base_url=self._worker_url, api_key="none", max_retries=0)
