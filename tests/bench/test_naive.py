"""The flood."""

import httpx
import pytest

from gateway.bench.corpus import prompts
from gateway.bench.naive import flood
from tests.support.answers import Pace
from tests.support.scripts import error
from tests.support.upstream import ScriptedUpstream

BODIES = [prompt.body("m", 8) for prompt in prompts(24)]


async def test_everything_is_sent_at_once(upstream: ScriptedUpstream) -> None:
    """All calls are in flight together and their tokens are added up."""
    upstream.pace = Pace(first=0.5)
    result = await flood(upstream.url, BODIES)
    assert upstream.peak == len(BODIES)
    assert (result.usage.prompt, result.usage.completion) == upstream.usage()
    assert result.tokens_per_second == pytest.approx(
        result.usage.completion / (result.ended_at - result.started_at)
    )


async def test_a_failure_is_not_hidden(upstream: ScriptedUpstream) -> None:
    """One failed call fails the arm."""
    upstream.enqueue(error(500))
    with pytest.raises(ExceptionGroup) as caught:
        await flood(upstream.url, BODIES[:2])
    assert caught.group_contains(httpx.HTTPStatusError)
