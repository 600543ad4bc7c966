"""What one gateway was told to leave alone, the others leave alone too. On the path of no call."""

import asyncio
from collections.abc import Mapping

from gateway.core.clock import Clock
from gateway.routing.state import TargetState
from gateway.store.cooldowns import Cooldown, CooldownChannel

_MOST_UNTOLD = 1000


class SharedCooldowns:
    """Tells and hears for gateway ``name``, which no other one may be called.

    What could not be told is forgotten: a gateway that did not hear it asks the target itself.
    """

    def __init__(
        self, name: str, states: Mapping[str, TargetState], channel: CooldownChannel, clock: Clock
    ) -> None:
        self._name = name
        self._states = states
        self._channel = channel
        self._clock = clock
        self._untold: asyncio.Queue[tuple[str, int, float]] = asyncio.Queue(_MOST_UNTOLD)
        for state in states.values():
            state.credentials.parked = self._parked

    def _parked(self, target: str, key: int, seconds: float) -> None:
        if not self._untold.full():
            self._untold.put_nowait((target, key, self._clock.monotonic() + seconds))

    async def tell(self) -> None:
        """Publish the next one. Raises StoreUnavailable; it is then not told."""
        target, key, until = await self._untold.get()
        left = until - self._clock.monotonic()
        if left > 0:
            await self._channel.publish(Cooldown(self._name, target, key, left))

    async def hear(self) -> None:
        """Heed the others. Raises StoreUnavailable when the channel is lost."""
        async for word in self._channel.listen():
            state = self._states.get(word.target)
            if word.gateway != self._name and state is not None:
                state.credentials.park(word.key, word.seconds, self._clock.monotonic())
