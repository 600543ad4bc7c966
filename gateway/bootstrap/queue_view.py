"""The queue as the command line looks at it."""

from typing import Any

from gateway.bootstrap.store_url import store_url
from gateway.core.settings import Settings
from gateway.store.client import connect
from gateway.store.queue import QueueClient


async def queue_stats(settings: Settings) -> dict[str, dict[str, Any]]:
    """Counters of every shard."""
    client = connect(store_url(settings))
    try:
        queue = QueueClient(client)
        return {shard: await queue.stats(shard) for shard in await queue.shards()}
    finally:
        await client.aclose()


async def queue_audit(settings: Settings) -> dict[str, list[str]]:
    """Violated invariants of every shard; an empty list is a healthy one."""
    client = connect(store_url(settings))
    try:
        queue = QueueClient(client)
        return {shard: await queue.audit(shard) for shard in await queue.shards()}
    finally:
        await client.aclose()
