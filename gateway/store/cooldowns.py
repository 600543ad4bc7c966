"""Word between gateways of targets that are to be left alone: published, never stored.

A gateway that did not hear it learns it from the target itself.
"""

import contextlib
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass
from typing import Any, Final

import orjson
from redis.exceptions import RedisError

from gateway.core.errors import StoreUnavailable
from gateway.store.client import StoreClient

CHANNEL: Final = "gw:{sys}:cooldowns"


@dataclass(frozen=True, slots=True)
class Cooldown:
    """Gateway ``gateway`` was told to leave the key at place ``key`` of ``target`` alone."""

    gateway: str
    target: str
    key: int
    seconds: float


class CooldownChannel:
    """Both ends of the channel. Methods raise StoreUnavailable when Redis is away."""

    def __init__(self, redis: StoreClient) -> None:
        self._redis = redis

    async def publish(self, word: Cooldown) -> None:
        """Tell every gateway that listens."""
        said = (word.gateway, word.target, word.key, word.seconds)
        await self._redis.publish(CHANNEL, orjson.dumps(said))

    async def listen(self) -> AsyncGenerator[Cooldown]:
        """Every word from now on. Ends by raising when the connection is lost."""
        pubsub = self._redis.pubsub(ignore_subscribe_messages=True)
        try:
            with _store_errors():
                await pubsub.subscribe(CHANNEL)
                while True:
                    found = await pubsub.get_message(timeout=None)
                    if found is not None and (word := _word(found["data"])) is not None:
                        yield word
        finally:
            with contextlib.suppress(RedisError, OSError):
                await pubsub.aclose()  # type: ignore[no-untyped-call]  # redis-py's own


def _word(data: Any) -> Cooldown | None:
    """None for what no gateway of ours wrote."""
    try:
        gateway, target, key, seconds = orjson.loads(data)
        return Cooldown(str(gateway), str(target), int(key), float(seconds))
    except (orjson.JSONDecodeError, TypeError, ValueError):
        return None


@contextlib.contextmanager
def _store_errors() -> Iterator[None]:
    try:
        yield
    except (RedisError, OSError) as error:
        raise StoreUnavailable("The queue does not answer.") from error
