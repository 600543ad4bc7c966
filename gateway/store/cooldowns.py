"""Word between gateways of targets that are to be left alone: published, never stored.

A gateway that did not hear it learns it from the target itself.
"""

import contextlib
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any, Final

from gateway.store.client import StoreClient
from gateway.store.words import Words

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
        self._words = Words(redis, CHANNEL)

    async def publish(self, word: Cooldown) -> None:
        """Tell every gateway that listens."""
        said = (word.gateway, word.target, word.key, word.seconds)
        await self._words.publish(said)

    async def listen(self) -> AsyncGenerator[Cooldown]:
        """Every word from now on. Ends by raising when the connection is lost."""
        async with contextlib.aclosing(self._words.listen()) as words:
            async for said in words:
                if (word := _word(said)) is not None:
                    yield word


def _word(data: Any) -> Cooldown | None:
    """None for what no gateway of ours wrote."""
    try:
        gateway, target, key, seconds = data
        return Cooldown(str(gateway), str(target), int(key), float(seconds))
    except (TypeError, ValueError):
        return None
