"""A worker over the tiny random model, in this process, for tests."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx

from gateway.core.clock import SystemClock
from gateway.worker.engine import Engine
from gateway.worker.options import WorkerOptions
from gateway.worker.run import build_engine, deliver_on, load_model
from gateway.worker.server import WorkerApp

MODEL = "tiny-model"


def options(**changes: Any) -> WorkerOptions:
    """Options of a small worker over the tiny model."""
    values: dict[str, Any] = {
        "model": "tiny",
        "served_model": MODEL,
        "rows": 20,
        "reserved_rows": 4,
        "context": 512,
        "device": "cpu",
    }
    return WorkerOptions(**{**values, **changes})


@asynccontextmanager
async def tiny_worker(**changes: Any) -> AsyncIterator[tuple[httpx.AsyncClient, Engine]]:
    """A client of the worker's app, and its engine."""
    chosen = options(**changes)
    model, vocabulary = load_model(chosen)
    deliver = deliver_on(asyncio.get_running_loop())
    engine = build_engine(chosen, model, vocabulary, deliver, on_death=lambda: None)
    engine.start()
    app = WorkerApp(engine, vocabulary, chosen, SystemClock()).app
    transport = httpx.ASGITransport(app=app)
    try:
        async with httpx.AsyncClient(transport=transport, base_url="http://worker") as client:
            yield client, engine
    finally:
        engine.stop()


def prompt_body(prompt: str, **members: Any) -> dict[str, Any]:
    """A greedy completions body."""
    body = {"model": MODEL, "prompt": prompt, "temperature": 0, "max_tokens": 16}
    return {**body, **members}


async def complete(client: httpx.AsyncClient, prompt: str, **members: Any) -> dict[str, Any]:
    """The answer to a completions call that must succeed."""
    answer = await client.post("/v1/completions", json=prompt_body(prompt, **members))
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found
