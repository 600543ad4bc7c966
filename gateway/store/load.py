"""Word of interactive load from gateways to dispatchers: published, never stored.

A gateway that dies is silent, and what it said last counts for a second; so there is nothing to
clean up and a dispatcher that starts knows everything after one heartbeat.
"""

import contextlib
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from gateway.core.load import TargetLoad
from gateway.store.client import StoreClient
from gateway.store.words import Words

CHANNEL: Final = "gw:{sys}:load"


@dataclass(frozen=True, slots=True)
class LoadWord:
    """What one gateway says: every target with calls or news; the others have none."""

    gateway: str
    targets: Mapping[str, TargetLoad]


class LoadChannel:
    """Both ends of the channel. Methods raise StoreUnavailable when Redis is away."""

    def __init__(self, redis: StoreClient) -> None:
        self._words = Words(redis, CHANNEL)

    async def publish(self, word: LoadWord) -> None:
        """Tell every dispatcher that listens."""
        targets = {
            name: (load.calls, load.prefilling, load.ttft_s, load.itl_s)
            for name, load in word.targets.items()
        }
        await self._words.publish((word.gateway, targets))

    async def listen(self) -> AsyncGenerator[LoadWord]:
        """Every word from now on. Ends by raising when the connection is lost."""
        async with contextlib.aclosing(self._words.listen()) as words:
            async for said in words:
                if (word := _word(said)) is not None:
                    yield word


def _word(data: Any) -> LoadWord | None:
    """None for what no gateway of ours wrote."""
    try:
        gateway, targets = data
        return LoadWord(str(gateway), {name: TargetLoad(*load) for name, load in targets.items()})
    except (TypeError, ValueError, AttributeError):
        return None
