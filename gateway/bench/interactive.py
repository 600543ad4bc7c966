"""Streamed chat calls through the official client, timed as a user would feel them."""

import asyncio
from collections.abc import Sequence
from typing import Any

from openai import AsyncOpenAI

from gateway.bench.timing import Timing
from gateway.core.usage import Usage


async def timed_call(client: AsyncOpenAI, body: dict[str, Any]) -> Timing:
    """One streamed call; raises openai.APIError when it fails.

    ``body`` is a chat completions body; members the client does not know are passed through.
    """
    now = asyncio.get_running_loop().time
    known = {name: body[name] for name in ("model", "messages", "max_tokens", "temperature")}
    extra = {name: value for name, value in body.items() if name not in known}
    timing = Timing(started_at=now())
    stream = await client.chat.completions.create(
        **known, stream=True, stream_options={"include_usage": True}, extra_body=extra
    )
    async for chunk in stream:
        if chunk.choices and chunk.choices[0].delta.content:
            timing.tokens_at.append(now())
        if chunk.usage is not None:
            timing.usage = Usage.from_openai(chunk.usage.model_dump())
    timing.ended_at = now()
    return timing


async def one_by_one(client: AsyncOpenAI, bodies: Sequence[dict[str, Any]]) -> list[Timing]:
    """Batch size 1: each call starts when the one before has ended."""
    return [await timed_call(client, body) for body in bodies]


async def arrivals(
    client: AsyncOpenAI, bodies: Sequence[dict[str, Any]], every: float, until: asyncio.Event
) -> list[Timing]:
    """Open loop: a call each ``every`` seconds, whatever became of the others.

    Stops starting calls when ``until`` is set or ``bodies`` are used up, then waits for those that
    run.
    """
    async with asyncio.TaskGroup() as group:
        calls = []
        for body in bodies:
            calls.append(group.create_task(timed_call(client, body)))
            if await _set_within(until, every):
                break
    return [call.result() for call in calls]


async def _set_within(event: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True
