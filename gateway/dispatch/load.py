"""What this dispatcher knows of interactive load, from what the gateways say."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from gateway.core.clock import Clock
from gateway.core.errors import StoreUnavailable
from gateway.core.load import TargetLoad
from gateway.pacing.shared import Waiting
from gateway.store.load import LoadChannel, LoadWord

SILENCE_SECONDS = 1.0
_MOMENT = 0.005
_NONE = TargetLoad()
Listener = Callable[[TargetLoad, TargetLoad], None]


@dataclass(slots=True)
class _Said:
    at: float
    word: LoadWord


class InteractiveLoad:
    """The sum over all gateways heard within the last second.

    A gateway that is silent for a second counts no more, and whoever listens is told. When all are
    silent, nothing is known.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._said: dict[str, _Said] = {}
        self._listeners: dict[str, Listener] = {}

    def listen(self, target: str, listener: Listener) -> None:
        """``listener`` gets what each gateway said of ``target`` before, and what it says now."""
        self._listeners[target] = listener

    def hear(self, word: LoadWord) -> None:
        """Take in what one gateway says."""
        before = self._said.get(word.gateway)
        known = before.word.targets if before is not None else {}
        self._said[word.gateway] = _Said(self._clock.monotonic(), word)
        for name in known.keys() | word.targets.keys():
            if name in self._listeners:
                self._listeners[name](known.get(name, _NONE), word.targets.get(name, _NONE))

    def at(self, target: str) -> Waiting | None:
        """Who waits for ``target`` as far as is known; None: nothing is known."""
        oldest = self._clock.monotonic() - SILENCE_SECONDS
        fresh = [said for said in self._said.values() if said.at >= oldest]
        if not fresh:
            return None
        loads = [said.word.targets.get(target, _NONE) for said in fresh]
        return Waiting(sum(load.calls for load in loads), sum(load.prefilling for load in loads))

    def forget(self) -> float:
        """Forget gateways that are silent, and tell so; seconds until there may be another."""
        now = self._clock.monotonic()
        silent = [g for g, said in self._said.items() if now - said.at > SILENCE_SECONDS]
        for word in [self._said.pop(gateway).word for gateway in silent]:
            for name in word.targets.keys() & self._listeners.keys():
                self._listeners[name](word.targets[name], _NONE)
        heard = (said.at for said in self._said.values())
        return min(heard, default=now) + SILENCE_SECONDS - now + _MOMENT


class LoadListener:
    """Keeps an ``InteractiveLoad`` fresh."""

    def __init__(self, channel: LoadChannel, load: InteractiveLoad) -> None:
        self._channel = channel
        self._load = load

    async def run(self) -> None:
        """Listen until cancelled; a lost connection is made again after a moment."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._forget())
            while True:
                await self._listen()
                await asyncio.sleep(SILENCE_SECONDS / 4)

    async def _forget(self) -> None:
        while True:
            pause = self._load.forget()
            await asyncio.sleep(pause)

    async def _listen(self) -> None:
        try:
            async for word in self._channel.listen():
                self._load.hear(word)
        except StoreUnavailable:
            return
