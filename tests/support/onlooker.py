"""A process that watches a gateway: streams and health checks, with the time of each arrival.

``python -m tests.support.onlooker ROOT KEY STREAMS`` opens the streams, asks ``/livez`` all the
while, and prints what it saw as JSON once the streams have ended. Times are ``time.monotonic()``,
which all processes of a machine share.
"""

import asyncio
import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.support.gateway import chat_body


@dataclass
class Sight:
    """``health`` is seconds each check took, ``arrived`` when each stream's contents came."""

    health: list[float] = field(default_factory=list)
    arrived: list[list[float]] = field(default_factory=list)


@contextlib.contextmanager
def looking_on(root: str, key: str, streams: int) -> Iterator[Sight]:
    """Run the process beside the body of the ``with``; the sight is there after it."""
    command = [sys.executable, "-m", "tests.support.onlooker", root, key, str(streams)]
    sight = Sight()
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        yield sight
        output, _ = process.communicate(timeout=120)
    found = json.loads(output)
    sight.health, sight.arrived = found["health"], found["arrived"]


async def _look(root: str, key: str, streams: int) -> dict[str, Any]:
    headers = {"authorization": f"Bearer {key}"}
    limits = httpx.Limits(max_connections=streams + 1)
    async with httpx.AsyncClient(headers=headers, limits=limits, timeout=60) as client:
        following = asyncio.gather(*(_follow(client, root) for _ in range(streams)))
        health: list[float] = []
        while not following.done():
            began = time.monotonic()
            (await client.get(f"{root}/livez")).raise_for_status()
            health.append(time.monotonic() - began)
            await asyncio.sleep(0.02)
        return {"health": health, "arrived": await following}


async def _follow(client: httpx.AsyncClient, root: str) -> list[float]:
    body = chat_body("watched", stream=True)
    async with client.stream("POST", f"{root}/v1/chat/completions", json=body) as answer:
        answer.raise_for_status()
        return [time.monotonic() async for line in answer.aiter_lines() if '"content"' in line]


if __name__ == "__main__":
    seen = asyncio.run(_look(sys.argv[1], sys.argv[2], int(sys.argv[3])))
    sys.stdout.write(json.dumps(seen))
