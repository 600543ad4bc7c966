"""Cases of the running process: large prompts, memory, connections to the store."""

import asyncio
import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import httpx
import psutil
import pytest

from gateway.store.client import connect
from gateway.store.usage import UsageTotals, field_name
from tests.chaos.proxy import FaultyProxy
from tests.support.gateway import chat_body
from tests.support.machine import slowness
from tests.support.onlooker import looking_on
from tests.support.scripts import Sse, answer, chat_chunk
from tests.support.serve import KEY, RunningHeadway, headway, one_target
from tests.support.upstream import ScriptedUpstream
from tests.support.valkey import server_in

_LONG = pytest.mark.long
_WHOLE = answer(
    {
        "id": "x",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "a"},
                "finish_reason": "stop",
            }
        ],
    }
)
_PUSH = """
import sys, httpx
root, key, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
line = b'{"custom_id": "%d"}' + b" " * 1000 + b"\\n"
files = {"file": ("big.jsonl", line * (size // len(line)), "application/jsonl")}
headers = {"authorization": f"Bearer {key}"}
answer = httpx.post(f"{root}/v1/files", data={"purpose": "batch"}, files=files,
                    headers=headers, timeout=120)
sys.exit(answer.status_code != 200)
"""


@pytest.mark.parametrize("upload", [40 * 10**6, pytest.param(200 * 10**6, marks=_LONG)])
def test_run_05_a_big_prompt_does_not_stall_others(
    tmp_path: Path, upstream: ScriptedUpstream, upload: int
) -> None:
    """RUN-05: health p99 below 100 ms, no gap above 150 ms, while 5 MB and an upload come in."""
    upstream.on(lambda seen: len(seen.body) > 10**6, _WHOLE)
    texts = [chat_chunk(str(n)) for n in range(120)]
    upstream.on("watched", Sse([*texts, chat_chunk(finish="stop")], pause=0.05))
    many = {"role": "user", "content": "word " * 20}
    # Made beforehand: it would hold up the upstream, which is in this process.
    big = json.dumps({**chat_body(), "messages": [many] * (5 * 10**6 // 130)}).encode()
    with headway(tmp_path, one_target(upstream.url)) as running:
        with looking_on(running.root, KEY, 10) as sight:
            upstream.wait(lambda: len(upstream.calls("watched")) == 10, 20)
            pushing = subprocess.Popen(
                [sys.executable, "-c", _PUSH, running.root, KEY, str(upload)]
            )
            for _ in range(3):
                with running.client() as client:
                    assert client.post("/chat/completions", content=big).status_code == 200
            assert pushing.wait(60) == 0
        limit = slowness()
        assert sorted(sight.health)[int(len(sight.health) * 0.99)] < 0.1 * limit
        assert all(len(times) == 120 for times in sight.arrived)
        gaps = [b - a for times in sight.arrived for a, b in pairwise(times)]
        assert max(gaps) < 0.15 * limit


@pytest.mark.parametrize(("warm_up", "calls"), [(200, 800), pytest.param(500, 5000, marks=_LONG)])
def test_run_08_memory_stays_flat(
    tmp_path: Path, upstream: ScriptedUpstream, warm_up: int, calls: int
) -> None:
    """RUN-08: streamed calls of 50 chunks leave less than 10 % and 30 MB behind."""
    chunks = [*map(chat_chunk, map(str, range(49))), chat_chunk(finish="stop")]
    upstream.on("m", Sse(chunks, cut=1500))
    with headway(tmp_path, one_target(upstream.url)) as running:
        process = psutil.Process(running.pid)
        asyncio.run(_many_streams(running, upstream, warm_up))
        before = process.memory_info().rss
        asyncio.run(_many_streams(running, upstream, calls))
        growth = process.memory_info().rss - before
        assert growth < 0.1 * before
        assert growth < 30 * 2**20


async def _many_streams(running: RunningHeadway, upstream: ScriptedUpstream, count: int) -> None:
    """That many streams, 16 at once, each read to its end."""
    headers = {"authorization": f"Bearer {KEY}"}
    left = iter(range(count))
    async with httpx.AsyncClient(headers=headers, timeout=60) as client:

        async def caller() -> None:
            for _ in left:
                body = chat_body(stream=True)
                got = await client.post(f"{running.base_url}/chat/completions", json=body)
                assert got.text.endswith("data: [DONE]\n\n")
                upstream.requests.clear()

        await asyncio.gather(*(caller() for _ in range(16)))


_HOUR = "2026-11-30T05"
_KEYS = {"a": "sk-key-a-000000000000", "b": "sk-key-b-000000000000"}


@pytest.fixture
def slow_store(tmp_path: Path) -> Iterator[FaultyProxy]:
    """A store whose relay can add to each request the ``delay`` a test sets."""
    (tmp_path / "store").mkdir()
    server = server_in(tmp_path / "store")
    server.start()
    proxy = FaultyProxy(tmp_path / "p.sock", lambda: Path(server.url.removeprefix("unix://")))
    proxy.start()
    yield proxy
    proxy.stop()
    server.stop()


def test_run_03_a_store_connection_after_a_cancel(
    tmp_path: Path, upstream: ScriptedUpstream, slow_store: FaultyProxy
) -> None:
    """RUN-03: calls cancelled while the store is slow; nobody reads another's jobs."""
    keys = {name: {"tenant": name, "key": key} for name, key in _KEYS.items()}
    policy = {**one_target(upstream.url), "keys": keys}
    env = {"HEADWAY_REDIS_URL": slow_store.url, "HEADWAY_DISPATCHERS": "0"}
    with headway(tmp_path, policy, env) as running:
        slow_store.delay = 0.1
        asyncio.run(_cancel_and_read(running))
        slow_store.delay = 0.0


async def test_run_03_usage_after_a_cancel(slow_store: FaultyProxy) -> None:
    """RUN-03: the same for usage; a value of another key or kind is never read."""
    redis = connect(slow_store.url)
    totals = UsageTotals(redis)
    own = {"a": 11, "b": 22}
    for tenant, tokens in own.items():
        name = field_name("interactive", "m", tenant, "ok", "prompt")
        await totals.ship(tenant, "file", 0, 1, {_HOUR: {name: tokens}})
    slow_store.delay = 0.1

    async def read(tenant: str, limit: float | None) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limit):
                rows = await totals.rows(tenant, [_HOUR])
                assert [(row.key_id, row.prompt) for row in rows] == [(tenant, own[tenant])]

    for wave in range(10):
        limits = [0.05 + 0.2 * (n + wave) / 30 if n % 2 else None for n in range(20)]
        await asyncio.gather(*(read("ab"[n // 2 % 2], limits[n]) for n in range(20)))
    for _ in range(10):
        await asyncio.gather(*(read("ab"[n % 2], None) for n in range(20)))
    slow_store.delay = 0.0
    await redis.aclose()


async def _cancel_and_read(running: RunningHeadway) -> None:
    async with httpx.AsyncClient(base_url=running.base_url, timeout=30) as client:

        async def make(number: int, owner: str) -> None:
            limit = 0.05 + 0.2 * (number % 20) / 20 if number % 4 < 2 else 30
            body = {"endpoint": "/v1/chat/completions", "body": chat_body(f"of {owner}")}
            try:
                async with asyncio.timeout(limit):
                    await client.post(
                        "/jobs", json={**body, "metadata": {"of": owner}}, headers=_key(owner)
                    )
            except TimeoutError:
                pass

        async def read(owner: str) -> int:
            answer = await client.get("/jobs", params={"limit": 10}, headers=_key(owner))
            page = answer.json()
            assert (answer.status_code, page["object"]) == (200, "list")
            assert {job["object"] for job in page["data"]} <= {"job"}
            assert {job["metadata"]["of"] for job in page["data"]} <= {owner}
            return len(page["data"])

        for wave in range(10):
            await asyncio.gather(
                *(make(20 * wave + number, "ab"[number % 2]) for number in range(20))
            )
        counts = []
        for _ in range(4):
            counts += await asyncio.gather(*(read("ab"[number % 2]) for number in range(50)))
        assert min(counts) == 10  # those that were not cancelled are there


def _key(owner: str) -> dict[str, str]:
    return {"authorization": f"Bearer {_KEYS[owner]}"}
