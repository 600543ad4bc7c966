"""The channel between dispatchers over a real server."""

import asyncio

import pytest

from gateway.core.errors import StoreUnavailable
from gateway.core.load import LaneLoad, Turn
from gateway.store.client import StoreClient, connect
from gateway.store.fleet import CHANNEL, FleetChannel, FleetWord


async def test_what_is_published_is_heard(store: StoreClient) -> None:
    """Words arrive whole; who speaks learns how many listen; what is no word is passed over."""
    channel = FleetChannel(store)
    said = FleetWord("a", {"up": LaneLoad(3, 1, wishes=True)}, {"up": Turn(7, "b")})
    assert await channel.publish(said) == 0
    words = channel.listen()
    first = asyncio.ensure_future(anext(words))
    for odd in (b"not a word", b"[1]", b'["a", {"up": 1}, {}]', b'["a", {}, {"up": ["x", "b"]}]'):
        while not await store.publish(CHANNEL, odd):  # noqa: ASYNC110 - a state elsewhere
            await asyncio.sleep(0.01)
    assert await channel.publish(said) == 1
    async with asyncio.timeout(5):
        assert await first == said
    await words.aclose()


async def test_a_server_that_is_away_is_said_so() -> None:
    """Both ends raise the product's error."""
    channel = FleetChannel(connect("redis://127.0.0.1:1"))
    with pytest.raises(StoreUnavailable):
        await channel.publish(FleetWord("a", {}, {}))
    with pytest.raises(StoreUnavailable):
        await anext(channel.listen())
