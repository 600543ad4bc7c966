"""Streams and stop strings of the worker, over the tiny model and a real socket."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
import uvicorn

from gateway.core.clock import SystemClock
from gateway.worker.engine import Engine
from gateway.worker.run import build_engine, deliver_on, load_model
from gateway.worker.server import WorkerApp
from tests.support.contract import checked
from tests.support.worker import MODEL, options, prompt_body


@asynccontextmanager
async def _served(**changes: Any) -> AsyncIterator[tuple[httpx.AsyncClient, Engine]]:
    """A tiny worker behind uvicorn, so that a client can really leave."""
    chosen = options(**changes)
    model, vocabulary = load_model(chosen)
    deliver = deliver_on(asyncio.get_running_loop())
    engine = build_engine(chosen, model, vocabulary, deliver, on_death=lambda: None)
    engine.start()
    app = WorkerApp(engine, vocabulary, chosen, SystemClock()).app
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", lifespan="off"))
    serving = asyncio.create_task(server.serve())
    await _until(lambda: server.started)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
            yield client, engine
    finally:
        server.should_exit = True
        await serving
        engine.stop()


async def _until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - the engine is a thread, and uvicorn has no event
        await asyncio.sleep(0.005)


async def _texts(client: httpx.AsyncClient, body: dict[str, Any]) -> tuple[list[str], str]:
    """Pieces of a streamed answer and its finish reason."""
    pieces: list[str] = []
    reasons: list[str] = []
    async with client.stream("POST", "/v1/completions", json={**body, "stream": True}) as answer:
        async for line in answer.aiter_lines():
            if line.startswith("data: {"):
                choice = checked(json.loads(line[6:]), "completion")["choices"][0]
                assert not reasons
                pieces.append(choice["text"])
                reasons += [choice["finish_reason"]] if choice["finish_reason"] else []
    assert len(reasons) == 1
    return pieces, reasons[0]


async def _plain(client: httpx.AsyncClient, body: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = checked(
        (await client.post("/v1/completions", json=body)).json(), "completion"
    )["choices"][0]
    return found


async def test_wrk_05_and_06_stop_strings_in_both_ways() -> None:
    """WRK-05, WRK-06: nothing of a stop string gets out; one that never comes costs nothing."""
    body = prompt_body("stop", temperature=1, seed=4, max_tokens=60, ignore_eos=True)
    async with _served() as (client, _):
        free = (await _plain(client, body))["text"]
        stop = free[20:23]
        before = free[: free.index(stop)]
        for stops, text, reason in (
            ([stop], before, "stop"),
            ([stop + "\x00never"], free, "length"),
            (["日本never", stop[:2] + "\x00"], free, "length"),
        ):
            plain = await _plain(client, {**body, "stop": stops})
            pieces, streamed = await _texts(client, {**body, "stop": stops})
            assert "".join(pieces) == plain["text"] == text
            assert streamed == plain["finish_reason"] == reason


async def test_wrk_18_the_last_text_comes_before_the_reason() -> None:
    """WRK-18: an answer that ends by length has its last text in the stream."""
    body = prompt_body("last", max_tokens=7, ignore_eos=True, stop=["\x00"])
    async with _served() as (client, _):
        plain = await _plain(client, body)
        pieces, reason = await _texts(client, body)
    assert "".join(pieces) == plain["text"]
    assert (pieces[-1], reason) == ("", "length")


@pytest.mark.parametrize("stream", [True, False])
async def test_wrk_16_a_reader_that_leaves_frees_its_row_at_once(stream: bool) -> None:
    """WRK-16: streaming or not, nothing is computed for a closed connection."""
    body = prompt_body("x", max_tokens=480, ignore_eos=True, stream=stream)
    async with _served() as (client, engine):
        calls = [asyncio.create_task(client.post("/v1/completions", json=body)) for _ in range(6)]
        async with asyncio.timeout(10):
            await _until(lambda: engine.active == 6)
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)
            await _until(lambda: not engine.active)
        assert engine.counts.output_tokens < 6 * 480


async def test_batch_rows_come_in_groups_and_complete() -> None:
    """A batch row's first token comes alone, then several at a time; the text is the same."""
    body = prompt_body("batch", max_tokens=40, ignore_eos=True)
    async with _served() as (client, _):
        plain = await _plain(client, body)
        pieces, _ = await _texts(client, {**body, "priority": 100})
    assert "".join(pieces) == plain["text"]
    assert len(pieces) <= 9


async def test_a_chat_stream_is_that_of_the_api() -> None:
    """Each event has the documented form; the plain answer, too."""
    body = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}], "max_tokens": 3}
    async with _served() as (client, _):
        answer = await client.post("/v1/chat/completions", json={**body, "logprobs": True})
        checked(answer.json(), "chat_completion")
        asked = {**body, "stream": True, "logprobs": True, "top_logprobs": 2}
        lines = (await client.post("/v1/chat/completions", json=asked)).text.split("\n\n")
    assert lines[-2:] == ["data: [DONE]", ""]
    for line in lines[:-2]:
        checked(json.loads(line[6:]), "chat_chunk")
