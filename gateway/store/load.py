"""Word of interactive load from gateways to dispatchers: published, never stored.

A gateway that dies is silent, and what it said last counts for a second; so there is nothing to
clean up and a dispatcher that starts knows everything after one heartbeat.
"""

import contextlib
from collections.abc import AsyncGenerator, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson
from redis.exceptions import RedisError

from gateway.core.errors import StoreUnavailable
from gateway.core.load import TargetLoad
from gateway.store.client import StoreClient

CHANNEL: Final = "gw:{sys}:load"


@dataclass(frozen=True, slots=True)
class LoadWord:
    """What one gateway says: every target with calls or news; the others have none."""

    gateway: str
    targets: Mapping[str, TargetLoad]


class LoadChannel:
    """Both ends of the channel. Methods raise StoreUnavailable when Redis is away."""

    def __init__(self, redis: StoreClient) -> None:
        self._redis = redis

    async def publish(self, word: LoadWord) -> None:
        """Tell every dispatcher that listens."""
        targets = {
            name: (load.calls, load.prefilling, load.ttft_s, load.itl_s)
            for name, load in word.targets.items()
        }
        await self._redis.publish(CHANNEL, orjson.dumps((word.gateway, targets)))

    async def listen(self) -> AsyncGenerator[LoadWord]:
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


def _word(data: Any) -> LoadWord | None:
    """None for what no gateway of ours wrote."""
    try:
        gateway, targets = orjson.loads(data)
        return LoadWord(str(gateway), {name: TargetLoad(*load) for name, load in targets.items()})
    except (orjson.JSONDecodeError, TypeError, ValueError, AttributeError):
        return None


@contextlib.contextmanager
def _store_errors() -> Iterator[None]:
    try:
        yield
    except (RedisError, OSError) as error:
        raise StoreUnavailable("The queue does not answer.") from error
