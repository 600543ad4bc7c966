"""The arms do the same work each time."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from openai import AsyncOpenAI

from gateway.bench.arms import Arms, Size
from tests.support.answers import Pace
from tests.support.serve import headway, one_target
from tests.support.upstream import ScriptedUpstream

if TYPE_CHECKING:
    from openai.types import Batch

SIZE = Size(
    min_rows=12,
    max_rows=12,
    tokens=6,
    single=2,
    alone=2,
    beside=4,
    interactive_tokens=3,
    share=0.5,
)


@pytest.fixture
async def arms(tmp_path: Path, upstream: ScriptedUpstream) -> AsyncIterator[Arms]:
    """Small arms on a real gateway; the upstream plays the engine."""
    upstream.pace = Pace(first=0.02, token=0.005)
    with headway(tmp_path, one_target(upstream.url, window=16)) as running:
        async with AsyncOpenAI(base_url=running.base_url, api_key=running.key) as client:
            yield Arms(client, upstream.url, "m", SIZE)


async def test_every_arm_does_what_it_says(arms: Arms, upstream: ScriptedUpstream) -> None:
    """Same prompts and lengths at batch size 1, in the batch, naive, and beside each other."""
    seen: list[str] = []

    def on_progress(batch: "Batch") -> None:
        seen.append(batch.status)

    await arms.warm_up()
    single = await arms.one_at_a_time()
    assert [timing.usage.completion for timing in single] == [6, 6]
    assert arms.fit(120.0) == 12
    assert len(await arms.interactive_alone()) == 2

    batch = await arms.batch(on_progress)
    assert (batch.rows, batch.answers, batch.usage.completion) == (12, 12, 72)
    assert seen[-1] == "completed"

    upstream.clear()
    naive = await arms.naive()
    assert naive.flood.usage == batch.usage
    assert upstream.peak >= 12

    both = await arms.both(on_progress)
    assert both.batch.usage == batch.usage
    assert 1 <= len(both.interactive) <= 4


def test_a_slow_machine_gets_fewer_rows() -> None:
    """96 at least, 192 at most, in steps, by the speed at batch size 1."""
    client = AsyncOpenAI(base_url="http://127.0.0.1:1/v1", api_key="k")
    assert Arms(client, "http://127.0.0.1:1/v1", "m").fit(10.0) == 96
    assert Arms(client, "http://127.0.0.1:1/v1", "m").fit(70.0) == 128
    assert Arms(client, "http://127.0.0.1:1/v1", "m").fit(900.0) == 192
