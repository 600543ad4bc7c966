"""Many calls at once over real HTTP: queues, cancels, silent targets."""

import asyncio
import time
from typing import Any

import openai
import pytest

from gateway.metering.record import CallStatus
from tests.support.gateway import KEY, MODEL, chat_body, running_gateway
from tests.support.scripts import never
from tests.support.upstream import ScriptedUpstream


def test_queue_full(upstream: ScriptedUpstream) -> None:
    """A full lane answers 429 with Retry-After; a place that frees goes to the next in line."""
    upstream.pace.first = 0.3
    lanes = {"interactive": {"max_in_flight": 1, "max_queue": 1}}
    with running_gateway({"up": {"base_url": upstream.url, "lanes": lanes}}) as gateway:
        statuses = asyncio.run(_at_once(gateway.url, 3))
        assert sorted(statuses) == [200, 200, 429]
        assert upstream.peak == 1
        codes = [record.outcome.http_status for record in gateway.settled(3)]
        assert sorted(codes) == [200, 200, 429]


async def _at_once(url: str, count: int) -> list[int]:
    client = openai.AsyncOpenAI(base_url=url, api_key=KEY, max_retries=0)

    async def one(number: int) -> int:
        await asyncio.sleep(number * 0.05)
        try:
            await client.chat.completions.create(**chat_body())
        except openai.APIStatusError as failed:
            return failed.status_code if "retry-after" in failed.response.headers else 0
        return 200

    async with client:
        return await asyncio.gather(*(one(number) for number in range(count)))


@pytest.mark.parametrize("waves", [5, pytest.param(13, marks=pytest.mark.long)])
def test_run_01_pool_survives_cancels(upstream: ScriptedUpstream, waves: int) -> None:
    """RUN-01: calls cancelled at random moments leak neither places nor sockets."""
    upstream.pace.first = 0.02
    upstream.accept_delay = 0.003
    lanes = {"interactive": {"max_in_flight": 10, "max_queue": 1000}}
    with running_gateway({"up": {"base_url": upstream.url, "lanes": lanes}}) as gateway:
        took = asyncio.run(_cancel_many(gateway.url, waves))
        assert max(took) < 5
        assert upstream.open_connections <= 10
        lane = gateway.records.last.intent.lane
        assert gateway.admission.running("up", lane) == 0


async def _cancel_many(url: str, waves: int) -> list[float]:
    client = openai.AsyncOpenAI(base_url=url, api_key=KEY, max_retries=0)

    async def timed(limit: float | None) -> float:
        start = time.monotonic()
        try:
            async with asyncio.timeout(limit):
                await client.chat.completions.create(**chat_body())
        except TimeoutError:
            pass
        return time.monotonic() - start

    async with client:
        for wave in range(waves):
            await asyncio.gather(*(timed(0.002 * (n % 40 + wave % 5) + 0.001) for n in range(40)))
        await asyncio.sleep(0.3)
        return list(await asyncio.gather(*(timed(None) for _ in range(10))))


@pytest.mark.parametrize("calls", [30, pytest.param(50, marks=pytest.mark.long)])
def test_run_06_silent_backend(
    upstream: ScriptedUpstream, upstream2: ScriptedUpstream, calls: int
) -> None:
    """RUN-06: a target that never answers ends its own calls at their limit and no others."""
    upstream.on("silent", never())
    lanes = {"interactive": {"max_in_flight": 64}}
    targets: dict[str, dict[str, Any]] = {
        "up1": {
            "base_url": upstream.url,
            "models": ["silent"],
            "timeouts": {"first_byte": "4s"},
            "breaker": "off",
            "lanes": lanes,
        },
        "up2": {"base_url": upstream2.url, "lanes": lanes},
    }
    with running_gateway(targets) as gateway:
        silent, normal = asyncio.run(_silent_and_normal(gateway.url, calls))
        assert all(3.99 <= took < 8 for took in silent)
        assert max(normal) < 3.9
        statuses = [
            r.outcome.status for r in gateway.settled(2 * calls) if r.intent.model == "silent"
        ]
        assert set(statuses) == {CallStatus.FAILED}


async def _silent_and_normal(url: str, calls: int) -> tuple[list[float], list[float]]:
    client = openai.AsyncOpenAI(base_url=url, api_key=KEY, max_retries=0)

    async def one(model: str) -> float:
        start = time.monotonic()
        try:
            await client.chat.completions.create(**{**chat_body(), "model": model})
        except openai.InternalServerError as failed:
            return time.monotonic() - start if failed.status_code == 504 else 0.0
        return time.monotonic() - start

    async with client:
        silent = asyncio.gather(*(one("silent") for _ in range(calls)))
        normal = await asyncio.gather(*(one(MODEL) for _ in range(calls)))
        return list(await silent), list(normal)
