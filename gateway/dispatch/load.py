"""What this dispatcher knows of interactive load, from what the gateways say."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gateway.core.clock import Clock
from gateway.core.errors import StoreUnavailable
from gateway.core.load import TargetLoad
from gateway.pacing.shared import Waiting
from gateway.store.load import LoadChannel, LoadWord

SILENCE_SECONDS = 1.0
_NONE = TargetLoad()


@dataclass(slots=True)
class _Said:
    at: float
    word: LoadWord


class InteractiveLoad:
    """The sum over all gateways heard within the last second.

    A gateway that is silent for a second counts no more. When all are silent, nothing is known.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._said: dict[str, _Said] = {}
        self._on_arrival: dict[str, Callable[[], None]] = {}
        self._on_change: dict[str, Callable[[], None]] = {}
        self._on_gap: dict[str, Callable[[float], None]] = {}
        self._on_ttft: dict[str, Callable[[float], None]] = {}

    def on_arrival(self, target: str, call: Callable[[], None]) -> None:
        """``call`` when a gateway has one more interactive call at ``target``."""
        self._on_arrival[target] = call

    def on_change(self, target: str, call: Callable[[], None]) -> None:
        """``call`` when a gateway has more or fewer interactive calls at ``target`` than before."""
        self._on_change[target] = call

    def on_gap(self, target: str, call: Callable[[float], None]) -> None:
        """``call`` with each fresh mean of the gaps between tokens, in seconds."""
        self._on_gap[target] = call

    def on_ttft(self, target: str, call: Callable[[float], None]) -> None:
        """``call`` with each fresh mean of the time to the first token, in seconds."""
        self._on_ttft[target] = call

    def hear(self, word: LoadWord) -> None:
        """Take in what one gateway says."""
        before = self._said.get(word.gateway)
        known = before.word.targets if before is not None else {}
        self._said[word.gateway] = _Said(self._clock.monotonic(), word)
        for name in known.keys() | word.targets.keys():
            load, last = word.targets.get(name, _NONE), known.get(name, _NONE)
            if load.calls > last.calls or load.prefilling > last.prefilling:
                self._tell(self._on_arrival, name)
            if (load.calls, load.prefilling) != (last.calls, last.prefilling):
                self._tell(self._on_change, name)
            if load.itl_s is not None and name in self._on_gap:
                self._on_gap[name](load.itl_s)
            if load.ttft_s is not None and name in self._on_ttft:
                self._on_ttft[name](load.ttft_s)

    @staticmethod
    def _tell(listeners: Mapping[str, Callable[[], None]], target: str) -> None:
        if target in listeners:
            listeners[target]()

    def at(self, target: str) -> Waiting | None:
        """Who waits for ``target`` as far as is known; None: nothing is known."""
        fresh = self._fresh()
        if not fresh:
            return None
        loads = [said.word.targets.get(target, _NONE) for said in fresh]
        return Waiting(sum(load.calls for load in loads), sum(load.prefilling for load in loads))

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
        try:
            async for word in self._channel.listen():
                self._load.hear(word)
        except StoreUnavailable:
            return
