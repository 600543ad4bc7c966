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

BATCH_SECONDS = 40.0
ROW_STEP = 32


@dataclass(frozen=True, slots=True)
class Size:
    """How much of everything. Offline answers have ``tokens`` tokens, interactive ones fewer.

    ``single`` of the offline requests run at batch size 1. Interactive calls arrive so often that
    their tokens are ``share`` of that speed: ``alone`` of them on the idle engine, up to ``beside``
    while offline work runs.
    """

    min_rows: int = 96
    max_rows: int = 192
    tokens: int = 64
    single: int = 6
    alone: int = 12
    beside: int = 64
    interactive_tokens: int = 24
    share: float = 0.3


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
    """Runs one arm at a time: first ``one_at_a_time``, to whose speed ``fit`` sets the others."""

    def __init__(
        self, client: AsyncOpenAI, worker_url: str, model: str, size: Size | None = None
    ) -> None:
        self.model = model
        self._size = size = size or Size()
        self._client = client
        self._worker_url = worker_url
        self._every = 1.0
        chosen = prompts(size.max_rows + size.beside)
        self._offline = chosen[: size.max_rows]
        self._interactive = [
            prompt.body(model, size.interactive_tokens) for prompt in chosen[size.max_rows :]
        ]

    async def warm_up(self) -> None:
        """One call past the gateway, so that no arm pays for the engine's first step."""
        async with self._worker() as worker:
            await timed_call(worker, self._interactive[0])

    async def interactive_alone(self) -> list[Timing]:
        """Interactive calls on an idle engine, which at their pace would not overlap either."""
        return await one_by_one(self._client, self._interactive[: self._size.alone])

    async def one_at_a_time(self) -> list[Timing]:
        """Batch size 1: the first of the batch's own requests, one after the other."""
        return await one_by_one(self._client, self._bodies()[: self._size.single])

    def fit(self, single_speed: float) -> int:
        """Fit the arms to this machine's output tokens per second at batch size 1.

        Chooses how many offline requests there are, about 40 s of work, and how often interactive
        calls arrive. Returns the number of offline requests.
        """
        size = self._size
        fitting = int(BATCH_SECONDS * 3 * single_speed / size.tokens)
        rows = max(size.min_rows, min(size.max_rows, fitting // ROW_STEP * ROW_STEP))
        self._offline = self._offline[:rows]
        self._every = size.interactive_tokens / (size.share * single_speed)
        return rows

    async def batch(self, on_progress: Callable[[Batch], None]) -> BatchResult:
        """The offline requests as a batch, nothing beside it."""
        content = input_file(self._offline, self.model, self._size.tokens)
        return await run_batch(self._client, content, on_progress)

    async def naive(self) -> NaiveRun:
        """The same requests and interactive calls straight at the engine, without lanes."""
        done = asyncio.Event()
        async with self._worker() as worker, asyncio.TaskGroup() as group:
            offline = group.create_task(flood(self._worker_url, self._bodies()))
            offline.add_done_callback(lambda _: done.set())
            calls = group.create_task(arrivals(worker, self._interactive, self._every, done))
        return NaiveRun(calls.result(), offline.result())

    async def both(self, on_progress: Callable[[Batch], None]) -> BothRun:
        """The batch through Headway, with the same interactive calls beside it."""
        done = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            offline = group.create_task(self.batch(on_progress))
            offline.add_done_callback(lambda _: done.set())
            calls = group.create_task(arrivals(self._client, self._interactive, self._every, done))
        return BothRun(calls.result(), offline.result())

    def _bodies(self) -> list[dict[str, Any]]:
        return [prompt.body(self.model, self._size.tokens) for prompt in self._offline]

    def _worker(self) -> AsyncOpenAI:
        return AsyncOpenAI(base_url=self._worker_url, api_key="none", max_retries=0)
