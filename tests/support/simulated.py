"""A simulated engine behind HTTP: in this process, or in one of its own."""

import asyncio
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx

from gateway.core.clock import SystemClock
from gateway.simulator.clockwork import Clockwork
from gateway.simulator.engine import Engine
from gateway.simulator.options import EngineOptions
from gateway.simulator.profile import EngineProfile
from gateway.simulator.server import EngineApp

MODEL = "simulated"
PROFILE = EngineProfile("test", 1.0, 0.01, 0.0, 0.0, 2000, max_num_seqs=8)


@asynccontextmanager
async def engine_app(**changes: Any) -> AsyncIterator[tuple[httpx.AsyncClient, Clockwork]]:
    """A client of the app, whole answers only, and what drives its engine."""
    options = EngineOptions(**{"profile": PROFILE, "model": MODEL, **changes})
    clockwork = Clockwork(Engine(options.profile, options.policy), options.scale)
    running = asyncio.create_task(clockwork.run())
    transport = httpx.ASGITransport(app=EngineApp(clockwork, options, SystemClock()).app)
    try:
        async with httpx.AsyncClient(transport=transport, base_url="http://engine") as client:
            yield client, clockwork
    finally:
        running.cancel()


@asynccontextmanager
async def engine_process(*arguments: str) -> AsyncIterator[tuple[str, int]]:
    """Address, without ``/v1``, and process id of ``headway bench engine``."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    argv = [sys.executable, "-m", "gateway", "bench", "engine", "--port", str(port), *arguments]
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL)  # noqa: ASYNC220
    url = f"http://127.0.0.1:{port}"
    try:
        async with httpx.AsyncClient() as client, asyncio.timeout(30):
            while True:
                try:
                    await client.get(f"{url}/health")
                    break
                except httpx.TransportError:
                    await asyncio.sleep(0.05)
        yield url, process.pid
    finally:
        process.terminate()
        process.wait(10)


def chat_body(size: int = 40, **members: Any) -> dict[str, Any]:
    """A chat call with ``size`` bytes of prompt."""
    messages = [{"role": "user", "content": "x" * size}]
    return {"model": MODEL, "messages": messages, "max_tokens": 5, **members}
