"""Words over a real server."""

import asyncio

import pytest

from gateway.core.errors import StoreUnavailable
from gateway.store.client import StoreClient, connect
from gateway.store.words import Words


async def test_words_arrive_in_order(store: StoreClient) -> None:
    """Of one channel alone; what is no JSON is passed over."""
    words, other = Words(store, "here"), Words(store, "there")
    heard = words.listen()
    first = asyncio.ensure_future(anext(heard))
    while not await store.publish("here", b"no json"):  # noqa: ASYNC110 - a state elsewhere
        await asyncio.sleep(0.01)
    await other.publish("elsewhere")
    await words.publish({"a": 1})
    await words.publish(["b"])
    async with asyncio.timeout(5):
        assert [await first, await anext(heard)] == [{"a": 1}, ["b"]]
    await heard.aclose()


async def test_a_server_that_is_away_is_said_so() -> None:
    """Both ends raise the product's error."""
    words = Words(connect("redis://127.0.0.1:1"), "c")
    with pytest.raises(StoreUnavailable):
        await words.publish(1)
    with pytest.raises(StoreUnavailable):
        await anext(words.listen())
