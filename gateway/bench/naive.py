"""The arm without Headway: everything thrown at the engine at once."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import httpx

from gateway.core.usage import Usage


@dataclass(frozen=True, slots=True)
class Flood:
    """What the offline requests got, from the first sent to the last answer (loop seconds)."""

    usage: Usage
    started_at: float
    ended_at: float

    @property
    def tokens_per_second(self) -> float:
        """Aggregate output speed."""
        return self.usage.completion / (self.ended_at - self.started_at)


async def flood(base_url: str, bodies: Sequence[dict[str, Any]]) -> Flood:
    """Send every body to a model server at the same moment: no lanes, no priority, no cap.

    Raises httpx.HTTPError when a call fails.
    """
    now = asyncio.get_running_loop().time
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx.AsyncClient(base_url=base_url, timeout=600, limits=limits) as client:
        started = now()
        async with asyncio.TaskGroup() as group:
            calls = [group.create_task(_call(client, body)) for body in bodies]
        ended = now()
    return Flood(sum((call.result() for call in calls), Usage()), started, ended)


async def _call(client: httpx.AsyncClient, body: dict[str, Any]) -> Usage:
    answer = await client.post("/chat/completions", json=body)
    answer.raise_for_status()
    return Usage.from_openai(answer.json()["usage"])
