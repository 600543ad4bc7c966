"""The channel of interactive load over a real server."""

import asyncio

import pytest

from gateway.core.errors import StoreUnavailable
from gateway.core.load import TargetLoad
from gateway.store.client import StoreClient, connect
from gateway.store.load import CHANNEL, LoadChannel, LoadWord


async def test_what_is_published_is_heard(store: StoreClient) -> None:
    """Words arrive whole and in order; what no gateway wrote is passed over."""
    channel = LoadChannel(store)
    words = channel.listen()
    first = asyncio.ensure_future(anext(words))
    while not await store.publish(CHANNEL, b"not a word"):  # noqa: ASYNC110 - a state elsewhere
        await asyncio.sleep(0.01)
    await store.publish(CHANNEL, b"[1]")
    said = LoadWord("g1", {"up": TargetLoad(2, 1, 0.25, None), "down": TargetLoad()})
    await channel.publish(said)
    async with asyncio.timeout(5):
        assert await first == said
    await words.aclose()


async def test_a_server_that_is_away_is_said_so() -> None:
    """Both ends raise the product's error."""
    channel = LoadChannel(connect("redis://127.0.0.1:1"))
    with pytest.raises(StoreUnavailable):
        await channel.publish(LoadWord("g", {}))
    with pytest.raises(StoreUnavailable):
        await anext(channel.listen())
