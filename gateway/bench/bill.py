"""What Headway metered, as an operator reads it: ``headway usage``."""

import asyncio
import json
import sys
from collections.abc import Mapping
from typing import Any

from gateway.bench.server import Server
from gateway.core.errors import BenchmarkFailed
from gateway.core.settings import child_environment
from gateway.core.usage import Usage

SETTLE_SECONDS = 15.0
SETTLED_PAUSE = 1.0


async def metered_by_lane(server: Server, expected: Mapping[str, Usage]) -> dict[str, Usage]:
    """Tokens per lane since the server's start.

    Records reach the store a little after the answers: waits up to 15 s for ``expected``, then
    reads once more after a pause, so that a sum which goes on growing shows. Raises
    BenchmarkFailed when the command fails.
    """
    now = asyncio.get_running_loop().time
    deadline = now() + SETTLE_SECONDS
    while not _same(metered := await _lanes(server), expected):
        if now() >= deadline:
            return metered
        await asyncio.sleep(0.2)
    await asyncio.sleep(SETTLED_PAUSE)
    return await _lanes(server)


def lanes_of(report: Mapping[str, Any]) -> dict[str, Usage]:
    """The lanes of ``headway usage --json``."""
    return {
        lane: Usage(sums["prompt_tokens"], sums["completion_tokens"])
        for lane, sums in report["lanes"].items()
    }


async def _lanes(server: Server) -> dict[str, Usage]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "gateway", "usage", "--json", "--data-dir", str(server.data_dir)),
        env=child_environment({"HEADWAY_API_KEY": server.api_key}),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await process.communicate()
    if process.returncode != 0:
        raise BenchmarkFailed(f"headway usage failed: {errors.decode(errors='replace')[-500:]}")
    return lanes_of(json.loads(output))


def _same(metered: Mapping[str, Usage], expected: Mapping[str, Usage]) -> bool:
    found = {lane: metered.get(lane, Usage()) for lane in expected}
    return all(
        (found[lane].prompt, found[lane].completion) == (usage.prompt, usage.completion)
        for lane, usage in expected.items()
    )
