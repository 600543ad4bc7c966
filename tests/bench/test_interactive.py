"""Timed streamed calls."""

import asyncio
import time
from typing import Any

import pytest
from openai import AsyncOpenAI, InternalServerError

from gateway.bench.corpus import prompts
from gateway.bench.interactive import arrivals, one_by_one, timed_call
from tests.support.answers import Pace
from tests.support.scripts import error
from tests.support.upstream import ScriptedUpstream


def bodies(count: int, tokens: int = 4) -> list[dict[str, Any]]:
    return [prompt.body("m", tokens) for prompt in prompts(count)]


def client_of(upstream: ScriptedUpstream) -> AsyncOpenAI:
    return AsyncOpenAI(base_url=upstream.url, api_key="k", max_retries=0)


async def test_a_call_is_timed_and_counted(upstream: ScriptedUpstream) -> None:
    """TTFT and gaps follow the server's pace; usage is the server's own."""
    upstream.pace = Pace(first=0.05, token=0.02)
    async with client_of(upstream) as client:
        began = time.perf_counter()
        timing = await timed_call(client, bodies(1)[0])
        took = time.perf_counter() - began
    assert timing.ttft >= 0.05
    assert len(timing.gaps) == 3
    assert 0.11 <= timing.ttft + sum(timing.gaps) <= took
    assert (timing.usage.prompt, timing.usage.completion) == upstream.usage()
    assert upstream.calls()[0].json["ignore_eos"] is True


async def test_one_by_one_never_overlaps(upstream: ScriptedUpstream) -> None:
    """Batch size 1 means one call at a time."""
    async with client_of(upstream) as client:
        timings = await one_by_one(client, bodies(3))
    assert len(timings) == 3
    assert upstream.peak == 1


async def test_arrivals_do_not_wait_for_answers(upstream: ScriptedUpstream) -> None:
    """An open loop: slow answers pile up instead of slowing the arrivals."""
    upstream.pace = Pace(first=0.3)
    async with client_of(upstream) as client:
        timings = await arrivals(client, bodies(4), 0.02, asyncio.Event())
    assert len(timings) == 4
    assert upstream.peak >= 3


async def test_arrivals_end_when_told(upstream: ScriptedUpstream) -> None:
    """No call starts after the offline work is done."""
    done = asyncio.Event()
    done.set()
    async with client_of(upstream) as client:
        assert len(await arrivals(client, bodies(4), 60, done)) == 1


async def test_a_failed_call_is_an_error(upstream: ScriptedUpstream) -> None:
    """A benchmark never counts a failure as a fast answer."""
    upstream.enqueue(error(500))
    async with client_of(upstream) as client:
        with pytest.raises(InternalServerError):
            await timed_call(client, bodies(1)[0])
