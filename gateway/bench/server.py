"""``headway serve`` as a child of a benchmark, and its sure end."""

import asyncio
import contextlib
import json
import secrets
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import httpx

from gateway.core.errors import BenchmarkFailed
from gateway.core.launch import launch_argv
from gateway.core.settings import child_environment

START_SECONDS = 90.0
STOP_SECONDS = 15.0
TAIL_CHARACTERS = 1500


@dataclass(frozen=True, slots=True)
class Server:
    """A running ``headway serve``. ``url`` and ``worker_url`` end in ``/v1``."""

    url: str
    worker_url: str
    api_key: str
    data_dir: Path


@contextlib.asynccontextmanager
async def serving() -> AsyncIterator[Server]:
    """Start the server with embedded defaults in a fresh data directory; stop and remove both.

    Ready means that gateway and model answer. The child gets SIGTERM when this process dies in any
    way. Raises BenchmarkFailed, with the end of its log, when it does not come up.
    """
    with tempfile.TemporaryDirectory(prefix="headway-bench-") as name:
        data_dir = Path(name)
        api_key = f"hw-{secrets.token_hex(16)}"
        with (data_dir / "serve.log").open("wb") as log:
            process = _start(data_dir, api_key, log.fileno())
        try:
            yield await _ready(process, data_dir, api_key)
        finally:
            _stop(process)


def _start(data_dir: Path, api_key: str, log: int) -> subprocess.Popen[bytes]:
    argv = [sys.executable, "-m", "gateway", "serve", "--port", "0", "--data-dir", str(data_dir)]
    # Its own session: Ctrl-C reaches this process alone, which then stops the server in order.
    return subprocess.Popen(  # noqa: S603 - our own command
        launch_argv(argv),
        env=child_environment({"HEADWAY_API_KEY": api_key}),
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        start_new_session=True,
    )


async def _ready(process: subprocess.Popen[bytes], data_dir: Path, api_key: str) -> Server:
    async with httpx.AsyncClient(timeout=5) as client:
        try:
            async with asyncio.timeout(START_SECONDS):
                while True:
                    if process.poll() is not None:
                        raise BenchmarkFailed(f"headway serve ended:\n{_tail(data_dir)}")
                    server = _announced(data_dir, api_key)
                    if server is not None and await _answers(client, server):
                        return server
                    await asyncio.sleep(0.1)
        except TimeoutError:
            raise BenchmarkFailed(f"headway serve is not ready:\n{_tail(data_dir)}") from None


def _announced(data_dir: Path, api_key: str) -> Server | None:
    try:
        found = json.loads((data_dir / "gateway.json").read_text())
    except FileNotFoundError:
        return None
    return Server(found["base_url"], next(iter(found["local"].values())), api_key, data_dir)


async def _answers(client: httpx.AsyncClient, server: Server) -> bool:
    probes = (server.url, "/readyz"), (server.worker_url, "/health")
    try:
        answers = [await client.get(url.removesuffix("/v1") + path) for url, path in probes]
    except httpx.HTTPError:
        return False
    return all(answer.is_success for answer in answers)


def _tail(data_dir: Path) -> str:
    return (data_dir / "serve.log").read_text(errors="replace")[-TAIL_CHARACTERS:]


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
