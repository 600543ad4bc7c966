"""The word that a gateway says all the time, said by a test."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from gateway.store.client import StoreClient
from gateway.store.load import LoadChannel, LoadWord


@asynccontextmanager
async def heartbeat(store: StoreClient, *gateways: str) -> AsyncIterator[None]:
    """These gateways say every 50 ms that nobody calls."""
    channel = LoadChannel(store)

    async def say() -> None:
        while True:
            for name in gateways:
                await channel.publish(LoadWord(name, {}))
            await asyncio.sleep(0.05)

    saying = asyncio.create_task(say())
    try:
        yield
    finally:
        saying.cancel()
        await asyncio.gather(saying, return_exceptions=True)
