"""Words between processes: published, never stored. Whoever does not listen misses them."""

import contextlib
from collections.abc import AsyncGenerator, Iterator
from typing import Any

import orjson
from redis.exceptions import RedisError

from gateway.core.errors import StoreUnavailable
from gateway.store.client import StoreClient


class Words:
    """Both ends of one channel. Methods raise StoreUnavailable when Redis is away."""

    def __init__(self, redis: StoreClient, channel: str) -> None:
        self._redis = redis
        self._channel = channel

    async def publish(self, word: Any) -> int:
        """Say ``word``, which JSON can carry, to everyone who listens; how many those are."""
        return int(await self._redis.publish(self._channel, orjson.dumps(word)))

    async def listen(self) -> AsyncGenerator[Any]:
        """Every word from now on; what is no JSON is passed over. Ends by raising."""
        pubsub = self._redis.pubsub(ignore_subscribe_messages=True)
        try:
            with _store_errors():
                await pubsub.subscribe(self._channel)
                while True:
                    found = await pubsub.get_message(timeout=None)
                    if found is not None and (word := _read(found["data"])) is not None:
                        yield word
        finally:
            with contextlib.suppress(RedisError, OSError):
                await pubsub.aclose()  # type: ignore[no-untyped-call]  # redis-py's own


def _read(data: Any) -> Any:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return None


@contextlib.contextmanager
def _store_errors() -> Iterator[None]:
    try:
        yield
    except (RedisError, OSError) as error:
        raise StoreUnavailable("The queue does not answer.") from error
