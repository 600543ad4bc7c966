"""Streams that stop in the middle hold nobody else up."""

import asyncio
import time

import httpx

from gateway.metering.record import CallStatus
from tests.support.gateway import KEY, RunningGateway, chat_body, running_gateway, wait_until
from tests.support.scripts import Sse, chat_chunk
from tests.support.upstream import ScriptedUpstream


def test_str_15_stall_after_the_first_token(upstream: ScriptedUpstream) -> None:
    """STR-15: with nothing but an idle limit set, stalled calls end at it and hold nobody up."""
    upstream.on("stall", Sse([chat_chunk("a")], end="hang"))
    target = {"base_url": upstream.url, "timeouts": {"idle": "2s"}}
    with running_gateway({"up": target}) as gateway:
        stalled, normal, asked = asyncio.run(_stalled_and_normal(gateway))
        assert all("upstream_stream_interrupted" in text for text in stalled)
        assert all("[DONE]" in text for text in normal)
        calls = upstream.calls("stall")
        assert len(calls) == 50
        assert all(1.99 <= (c.peer_closed_at or 0) - c.sent[-1] <= 4 for c in calls)
        assert max(c.at for c in upstream.calls("fine")) - asked < 1.9
        records = gateway.settled(60)
        failed = [r for r in records if r.outcome.status is CallStatus.FAILED]
        assert len(failed) == 50
        assert {r.outcome.attempts[-1].code for r in failed} == {"upstream_stream_interrupted"}


async def _stalled_and_normal(
    gateway: RunningGateway, stalling: int = 50
) -> tuple[list[str], list[str], float]:
    """Answers of calls that stall and of 10 that are made while those hang, at the second told."""
    limits = httpx.Limits(max_connections=100)
    headers = {"authorization": f"Bearer {KEY}"}
    async with httpx.AsyncClient(limits=limits, headers=headers, timeout=20) as client:

        async def one(text: str) -> str:
            body = chat_body(text, stream=True)
            return (await client.post(f"{gateway.url}/chat/completions", json=body)).text

        hanging = asyncio.gather(*(one("stall") for _ in range(stalling)))
        await asyncio.to_thread(wait_until, lambda: gateway.records.opened_calls)
        asked = time.monotonic()
        normal = await asyncio.gather(*(one("fine") for _ in range(10)))
        return list(await hanging), list(normal), asked


def test_str_15_a_pool_of_ten_survives_stalls(upstream: ScriptedUpstream) -> None:
    """STR-15: stalls in all of ten places have the target left out, and throw nobody out.

    Who waits for a place waits until the target is asked again, and every call is answered.
    """
    upstream.on("stall", Sse([chat_chunk("a")], end="hang"))
    target = {
        "base_url": upstream.url,
        "timeouts": {"idle": "300ms"},
        "lanes": {"interactive": {"max_in_flight": 10}},
    }
    with running_gateway({"up": target}) as gateway:
        stalled, normal, _ = asyncio.run(_stalled_and_normal(gateway))
        assert all("upstream_stream_interrupted" in text for text in stalled)
        assert all("[DONE]" in text for text in normal)
        assert len(upstream.calls("stall")) == 50
        assert upstream.peak == 10
        wait_until(lambda: gateway.chat().status_code == 200)
        _, normal, asked = asyncio.run(_stalled_and_normal(gateway, stalling=0))
        assert all("[DONE]" in text for text in normal)
        assert max(call.at for call in upstream.calls("fine")[-10:]) - asked < 3
