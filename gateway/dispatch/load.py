"""What this dispatcher knows of interactive load, from what the gateways say."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from gateway.core.clock import Clock
from gateway.core.load import TargetLoad
from gateway.store.load import LoadChannel, LoadWord

SILENCE_SECONDS = 1.0
_NONE = TargetLoad()


@dataclass(slots=True)
class _Said:
    at: float
    word: LoadWord


class InteractiveLoad:
    """The sum over all gateways heard within the last second.

    A gateway that is silent for a second counts no more. When all are silent, nothing is known and
    ``busy`` assumes calls everywhere. ``changed`` runs for each word that made a target busy.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._said: dict[str, _Said] = {}
        self._listeners: list[Callable[[str], None]] = []
        self._latencies: list[Callable[[str, TargetLoad], None]] = []

    def on_busy(self, listener: Callable[[str], None]) -> None:
        """``listener`` is called with the target that got its first interactive call."""
        self._listeners.append(listener)

    def on_latency(self, listener: Callable[[str, TargetLoad], None]) -> None:
        """``listener`` is called with each fresh latency of a target."""
        self._latencies.append(listener)

    def hear(self, word: LoadWord) -> None:
        """Take in what one gateway says."""
        idle = [name for name, load in word.targets.items() if load.calls and not self.calls(name)]
        self._said[word.gateway] = _Said(self._clock.monotonic(), word)
        for name in idle:
            for listener in self._listeners:
                listener(name)
        for name, load in word.targets.items():
            if load.ttft_s is not None:
                for tell in self._latencies:
                    tell(name, load)

    def calls(self, target: str) -> int:
        """Interactive calls at ``target`` as far as is known."""
        return sum(said.word.targets.get(target, _NONE).calls for said in self._fresh())

    def busy(self, target: str) -> bool:
        """Whether somebody waits for ``target``, or may."""
        return self.calls(target) > 0 or not self._fresh()

    def _fresh(self) -> list[_Said]:
        oldest = self._clock.monotonic() - SILENCE_SECONDS
        for gateway in [g for g, said in self._said.items() if said.at < oldest]:
            del self._said[gateway]
        return list(self._said.values())


class LoadListener:
    """Keeps an ``InteractiveLoad`` fresh."""

    def __init__(self, channel: LoadChannel, load: InteractiveLoad) -> None:
        self._channel = channel
        self._load = load

    async def run(self) -> None:
        """Listen until cancelled; a lost connection is made again after a moment."""
        while True:
            await self._listen()
            await asyncio.sleep(SILENCE_SECONDS / 4)

    async def _listen(self) -> None:
        from gateway.core.errors import StoreUnavailable

        try:
            async for word in self._channel.listen():
                self._load.hear(word)
        except StoreUnavailable:
            return
