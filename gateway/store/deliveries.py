"""Webhook deliveries that are still to be made, and those made lately."""

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import orjson

from gateway.core.errors import NotFound
from gateway.schemas.webhooks import Event
from gateway.store.blobs import BlobStore
from gateway.store.client import StoreClient
from gateway.store.scripts import whole_script

_DUE = "gw:{hooks}:due"
_FOLDER = "hooks/"
_REMEMBERED_SECONDS = 8 * 86_400


@dataclass(frozen=True, slots=True)
class Delivery:
    """One event for one endpoint of a tenant; ``tries`` were made so far, in vain."""

    id: str
    event: Event
    tenant: str
    endpoint: str
    since: int
    tries: int = 0


class Deliveries:
    """``gw:{hooks}:due`` zset: delivery -> due ms. ``gw:{hooks}:d:<delivery>`` hash: what it is.

    ``hooks/<event>`` on disk: an event that not all were told of, for when Redis loses that.
    """

    def __init__(self, redis: StoreClient, blobs: BlobStore) -> None:
        self._redis = redis
        self._blobs = blobs
        self._add = whole_script("delivery_add")
        self._claim = whole_script("job_claim")

    async def add(self, event: Event, tenant: str, endpoint: str, now: int) -> bool:
        """Note one to be made from ``now`` on, once. True: it was made, or given up."""
        delivery = f"{event.id}.{endpoint}"
        fields = {
            "type": event.type,
            "object": event.object_id,
            "at": str(event.created_at),
            "tenant": tenant,
            "endpoint": endpoint,
            "since": str(now),
        }
        flat = [text for pair in fields.items() for text in pair]
        keys = [_key(delivery), _DUE]
        first = (delivery, _REMEMBERED_SECONDS, now * 1000)
        return bool(await self._add.run(self._redis, keys, *first, *flat))

    async def claim(self, ttl_ms: int) -> Delivery | None:
        """One that is due, for ``ttl_ms``: nobody else gets it meanwhile."""
        claimed = await self._claim.run(self._redis, [_DUE], str(ttl_ms), "")
        if claimed is None:
            return None
        delivery = claimed.decode()
        flat = await self._do("HGETALL", _key(delivery))
        found = {name.decode(): value.decode() for name, value in flat.items()}
        if not found or "done" in found:
            await self._do("ZREM", _DUE, delivery)
            return None
        event = Event(found["type"], found["object"], int(found["at"]))
        since, tries = int(found["since"]), int(found.get("tries", 0))
        return Delivery(delivery, event, found["tenant"], found["endpoint"], since, tries)

    async def later(self, delivery: Delivery, at_ms: int) -> None:
        """It failed once more and is due again at ``at_ms``."""
        await self._do("HSET", _key(delivery.id), "tries", delivery.tries + 1)
        await self._do("ZADD", _DUE, "XX", at_ms, delivery.id)

    async def end(self, delivery: Delivery) -> None:
        """It was made, or is given up."""
        await self._do("HSET", _key(delivery.id), "done", 1)
        await self._do("EXPIRE", _key(delivery.id), _REMEMBERED_SECONDS)
        await self._do("ZREM", _DUE, delivery.id)

    async def keep(self, event: Event, tenant: str) -> None:
        """Note on disk that an event is to be told."""
        kept = {"type": event.type, "object": event.object_id, "at": event.created_at}
        await self._blobs.put(_FOLDER + event.id, orjson.dumps({**kept, "tenant": tenant}))

    async def kept(self) -> list[tuple[Event, str]]:
        """Events that are to be told, each with its tenant."""
        found = []
        for name in await self._blobs.list(_FOLDER):
            with suppress(NotFound):  # told meanwhile
                kept = orjson.loads(await self._blobs.read(name))
                event = Event(kept["type"], kept["object"], kept["at"])
                found.append((event, kept["tenant"]))
        return found

    async def drop(self, event: Event) -> None:
        """All were told of it."""
        await self._blobs.delete(_FOLDER + event.id)

    async def _do(self, *command: str | int) -> Any:
        return await self._redis.execute_command(*command)


def _key(delivery: str) -> str:
    return f"gw:{{hooks}}:d:{delivery}"
