"""Pages of a target beside its API."""

from collections.abc import AsyncIterator

import pytest

from gateway.core.clock import SystemClock
from gateway.core.errors import UpstreamRefused, UpstreamTimeout
from gateway.providers.openai_http import OpenAITarget
from tests.support.upstream import ScriptedUpstream


@pytest.fixture
async def target(upstream: ScriptedUpstream) -> AsyncIterator[OpenAITarget]:
    """A target with two keys."""
    made = OpenAITarget("t", upstream.url, SystemClock(), api_keys=["k1", "k2"])
    yield made
    await made.aclose()


async def test_below_the_root(target: OpenAITarget, upstream: ScriptedUpstream) -> None:
    """The path is not below ``/v1``; status and body come as they are, with our key."""
    upstream.pages["/health"] = (503, b"loading")
    assert await target.get_page("/health?deep=1", 2) == (503, b"loading")
    (seen,) = upstream.requests
    assert (seen.method, seen.path) == ("GET", "/health?deep=1")
    assert seen.headers["authorization"] == "Bearer k1"


async def test_nobody_there(target: OpenAITarget, upstream: ScriptedUpstream) -> None:
    """A refused connection is an error."""
    upstream.refuse()
    with pytest.raises(UpstreamRefused):
        await target.get_page("/health", 2)


async def test_a_look_has_an_end(target: OpenAITarget, upstream: ScriptedUpstream) -> None:
    """A server that takes connections and says nothing is noticed."""
    upstream.accept_delay = 30
    upstream.refuse()
    upstream.start()
    with pytest.raises(UpstreamTimeout):
        await target.get_page("/health", 0.2)


async def test_connections_do_not_pile_up(target: OpenAITarget, upstream: ScriptedUpstream) -> None:
    """Each look closes its own."""
    for _ in range(3):
        await target.get_page("/metrics", 2)
    await upstream.until(lambda: upstream.open_connections == 0)
