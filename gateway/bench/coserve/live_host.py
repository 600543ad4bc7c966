"""One OpenAI-compatible server over HTTP, with who is on it."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import aiohttp
import orjson

from gateway.bench.coserve.record import CallRecord, Record
from gateway.bench.coserve.rows import Row
from gateway.bench.coserve.word import EngineLoad
from gateway.core.clock import Clock
from gateway.pacing.streams import StreamSampler

if TYPE_CHECKING:
    from gateway.bench.coserve.lane import OfflineLane

_WORDS = ("sun", "oak", "ice", "map", "key", "sea", "fox", "ink", "jar", "owl", "pie", "rug")
_PRIORITIES = {"interactive": 0, "offline": 10}


class Filler:
    """Prompts that no cache of prefixes knows. A server adds ``template`` tokens to each."""

    def __init__(self, seed: int, template: int = 0) -> None:
        self._words = random.Random(seed)  # noqa: S311 - filler
        self._template = template

    def text(self, tokens: int) -> str:
        """About ``tokens`` tokens with the template, four bytes each."""
        return " ".join(self._words.choices(_WORDS, k=max(1, tokens - self._template)))


@dataclass(frozen=True, slots=True)
class Address:
    """``url`` ends in ``/v1``; with ``priority`` bodies carry one.

    The server puts ``template`` tokens around a prompt.
    """

    url: str
    model: str
    template: int = 0
    priority: bool = False


class LiveHost:
    """Streams calls to a server."""

    def __init__(
        self, session: aiohttp.ClientSession, address: Address, record: Record, clock: Clock
    ) -> None:
        self.load = EngineLoad()
        self.lane: OfflineLane | None = None
        self.on_change: Callable[[], None] = _nothing
        self.failures = 0
        self._filler = Filler(1, address.template)
        self._session = session
        self._url = f"{address.url}/chat/completions"
        self._model = address.model
        self._record = record
        self._clock = clock
        self._priority = address.priority
        self._tasks: set[asyncio.Task[None]] = set()
        self._rows: dict[Row, asyncio.Task[None]] = {}
        self._sampler = StreamSampler()

    def take_call(self, call: CallRecord) -> None:
        """Make an interactive call."""
        self.load.calls += 1
        self.load.prefilling += 1
        self._spawn(self._call(call))
        self.on_change()

    def start(self, row: Row) -> None:
        """Send an offline row."""
        self._rows[row] = self._spawn(self._row(row))

    def stop(self, row: Row) -> None:
        """Take an offline row back: the connection is closed."""
        self._rows.pop(row).cancel()

    async def close(self) -> None:
        """Drop everything that runs."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _spawn(self, work: Any) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _call(self, call: CallRecord) -> None:
        try:
            async for _ in self._sampled(call, "interactive"):
                if not call.tokens:
                    self.load.prefilling -= 1
                    self.on_change()
                self._record.token(call, self._clock.monotonic())
            call.ended = True
        except (aiohttp.ClientError, ValueError):
            call.failed = True
        self.load.calls -= 1
        self.load.prefilling -= not call.tokens
        self.load.ended.append(call)
        self.on_change()

    async def _row(self, row: Row) -> None:
        first = True
        try:
            async for _ in self._sampled(row, "offline"):
                if first and self.lane is not None:
                    self._record.prompt_tokens += row.prompt
                    self.lane.first_token(row)
                    self.lane.start_ready()
                first = False
                self._record.output_tokens += 1
            self._record.rows += 1
        except (aiohttp.ClientError, ValueError):
            self.failures += 1
            await asyncio.sleep(1.0)
        del self._rows[row]
        if self.lane is not None:
            self.lane.ended(row)
            self.lane.start_ready()

    async def _sampled(self, stream: CallRecord | Row, lane: str) -> AsyncIterator[None]:
        """The tokens of a stream; they tell how long the steps of the server are."""
        first = True
        try:
            async for _ in self._tokens(stream.prompt, stream.output, lane):
                now = self._clock.monotonic()
                if first:
                    sample = self._sampler.first(stream, stream.prompt, now)
                else:
                    sample = self._sampler.token(stream, now)
                first = False
                if sample is not None:
                    self._record.samples.append(sample)
                yield
        finally:
            self._sampler.end(stream)

    async def _tokens(self, prompt: int, output: int, lane: str) -> AsyncIterator[None]:
        """Once for each piece of text that arrives."""
        body = {
            "model": self._model,
            "messages": [{"role": "user", "content": self._filler.text(prompt)}],
            "max_tokens": output,
            "ignore_eos": True,
            "temperature": 0,
            "stream": True,
        }
        if self._priority:
            body["priority"] = _PRIORITIES[lane]
        async with self._session.post(self._url, json=body) as answer:
            answer.raise_for_status()
            async for line in answer.content:
                if line.startswith(b"data: {") and _says_something(orjson.loads(line[6:])):
                    yield


def _says_something(event: dict[str, Any]) -> bool:
    if "error" in event:
        raise ValueError(event["error"])
    choices = event.get("choices") or [{}]
    return bool((choices[0].get("delta") or {}).get("content"))


def _nothing() -> None:
    """Nobody wants to know."""
