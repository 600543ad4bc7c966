"""Word between dispatchers: what each has in flight at each target, and whose turn it is there."""

import contextlib
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from gateway.core.load import LaneLoad, Turn
from gateway.store.client import StoreClient
from gateway.store.words import Words

CHANNEL: Final = "gw:{sys}:fleet"


@dataclass(frozen=True, slots=True)
class FleetWord:
    """What one dispatcher says: every target that it uses, and the turns that it knows of."""

    dispatcher: str
    targets: Mapping[str, LaneLoad]
    turns: Mapping[str, Turn]


class FleetChannel:
    """Both ends of the channel. Methods raise StoreUnavailable when Redis is away."""

    def __init__(self, redis: StoreClient) -> None:
        self._words = Words(redis, CHANNEL)

    async def publish(self, word: FleetWord) -> int:
        """Tell every dispatcher that listens; how many that are, oneself among them."""
        loads = {
            name: (load.running, load.prefilling, load.wishes)
            for name, load in word.targets.items()
        }
        turns = {name: (turn.number, turn.holder) for name, turn in word.turns.items()}
        return await self._words.publish((word.dispatcher, loads, turns))

    async def listen(self) -> AsyncGenerator[FleetWord]:
        """Every word from now on, one's own too. Ends by raising when the connection is lost."""
        async with contextlib.aclosing(self._words.listen()) as words:
            async for said in words:
                if (word := _word(said)) is not None:
                    yield word


def _word(data: Any) -> FleetWord | None:
    """None for what no dispatcher of ours wrote."""
    try:
        dispatcher, loads, turns = data
        targets = {
            str(name): LaneLoad(int(rows), int(prompts), bool(wishes))
            for name, (rows, prompts, wishes) in loads.items()
        }
        known = {str(name): Turn(int(n), str(holder)) for name, (n, holder) in turns.items()}
    except (TypeError, ValueError, AttributeError):
        return None
    return FleetWord(str(dispatcher), targets, known)
