"""The channel of cooldowns."""

import asyncio

import pytest

from gateway.core.errors import StoreUnavailable
from gateway.store.client import StoreClient, connect
from gateway.store.cooldowns import CHANNEL, Cooldown, CooldownChannel
from tests.support.ports import free_port
from tests.support.valkey import somebody_listens


async def test_words_arrive_as_said(store: StoreClient) -> None:
    """What is no word of ours is passed over."""
    channel = CooldownChannel(store)
    words = channel.listen()
    first = asyncio.create_task(anext(words))
    await somebody_listens(store, CHANNEL)
    for odd in (b"x", b"[]", b'["g", "t", "x", 1]', b"{}", b"[1, 2, null, 3]"):
        await store.publish(CHANNEL, odd)
    said = Cooldown("g1", "t", 1, 2.5)
    await channel.publish(said)
    assert await first == said
    await words.aclose()


async def test_nobody_there() -> None:
    """Listening to a server that is away says so."""
    client = connect(f"redis://127.0.0.1:{free_port()}")
    with pytest.raises(StoreUnavailable):
        await anext(CooldownChannel(client).listen())
    await client.aclose()
