"""The dispatchers that live: each tells the others what it has in flight, and takes its part.

It is told by published words, as gateways tell of their calls: a dispatcher that dies is silent,
and after a second its part is the others'. While our own word does not come back to us the silence
is ours, and everybody else counts on.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from gateway.core.clock import Clock
from gateway.core.errors import StoreUnavailable
from gateway.core.load import LaneLoad
from gateway.dispatch.lane import TargetLane
from gateway.dispatch.part import Part
from gateway.store.fleet import FleetChannel, FleetWord

SILENCE_SECONDS: Final = 1.0
_HEARTBEAT_SECONDS: Final = 0.25
_CROWDED_SECONDS: Final = 0.05
_FIRST_SECONDS: Final = 0.3
_NOTHING: Final = LaneLoad()


@dataclass(slots=True)
class _Said:
    at: float
    targets: Mapping[str, LaneLoad]


class Fleet:
    """What ``me`` knows of the others. Nothing starts before ``open``: who is there is not known.

    ``speaks`` is set when the word of now is to be published at once.
    """

    def __init__(self, me: str, clock: Clock) -> None:
        self.me = me
        self.open = False
        self.speaks = asyncio.Event()
        self._clock = clock
        self._lanes: dict[str, TargetLane] = {}
        self._parts: dict[str, Part] = {}
        self._said: dict[str, _Said] = {}
        self._heard_self = clock.monotonic()

    def at(self, target: str) -> Part:
        """Our part of the caps of ``target``."""
        part = Part(self.me, self._clock, self.speaks.set, lambda: self.open)
        return self._parts.setdefault(target, part)

    def join(self, lanes: Mapping[str, TargetLane]) -> None:
        """Whose rows these parts are for."""
        self._lanes = {name: lane for name, lane in lanes.items() if name in self._parts}

    def begin(self) -> None:
        """It is known who is there: rows may start."""
        self.open = True
        self._call()

    def word(self) -> FleetWord:
        """What to say now."""
        loads = {name: lane.load() for name, lane in self._lanes.items()}
        for name, load in loads.items():
            self._parts[name].said(load)
        return FleetWord(
            self.me,
            {name: load for name, load in loads.items() if load.active},
            {name: self._parts[name].turn for name in loads if self._parts[name].turn.number},
        )

    def hear(self, word: FleetWord) -> None:
        """Take in what one dispatcher says; one's own word says that words arrive."""
        now = self._clock.monotonic()
        if word.dispatcher == self.me:
            self._heard(now)
            return
        if word.dispatcher not in self._said:
            self._said[word.dispatcher] = _Said(now, {})
            self.speaks.set()
        said = self._said[word.dispatcher]
        known, said.at, said.targets = said.targets, now, word.targets
        for name, lane in self._lanes.items():
            was, load = known.get(name, _NOTHING), word.targets.get(name, _NOTHING)
            part = self._parts[name]
            part.others[word.dispatcher] = load
            turned = name in word.turns and part.heard(word.turns[name])
            if load.prefilling > was.prefilling:
                lane.pacer.started()
            if load.active and not was.active:
                self.speaks.set()
            if turned or load != was:
                lane.call()

    def look(self) -> float:
        """Forget who is silent, pass on turns that are over; seconds until the next word is due."""
        oldest = min(self._heard_self, self._clock.monotonic()) - SILENCE_SECONDS
        for gone in [name for name, said in self._said.items() if said.at < oldest]:
            del self._said[gone]
            for part in self._parts.values():
                part.others.pop(gone, None)
            self._call()
        if not self._said:
            return _HEARTBEAT_SECONDS
        shared = [self._look_at(name, self._parts[name]) for name in self._lanes]
        return _CROWDED_SECONDS if any(shared) else _HEARTBEAT_SECONDS

    def _heard(self, now: float) -> None:
        """Words arrive. After a silence of ours the others have a second to be heard."""
        if now - self._heard_self > SILENCE_SECONDS:
            for said in self._said.values():
                said.at = now
        self._heard_self = now

    def _look_at(self, name: str, part: Part) -> bool:
        """Whether something may change soon at one target, without a word from anybody."""
        load, turn = self._lanes[name].load(), part.turn
        if not load.active:
            part.look(load)
            return False
        starved = load.wishes and not load.running
        if part.crowded:
            part.look(load)
        if starved or part.turn is not turn:
            self._lanes[name].call()
        return starved or part.crowded

    def _call(self) -> None:
        for lane in self._lanes.values():
            lane.call()


class FleetTalk:
    """Keeps a ``Fleet`` informed, and the others about it."""

    def __init__(self, channel: FleetChannel, fleet: Fleet) -> None:
        self._channel = channel
        self._fleet = fleet

    async def run(self) -> None:
        """Speak and listen until cancelled. Whoever is alone begins at once."""
        listeners = await self._first()
        if not listeners:
            self._fleet.begin()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._listen())
            tasks.create_task(self._speak())
            if listeners:
                await asyncio.sleep(_FIRST_SECONDS)
                self._fleet.begin()

    async def _first(self) -> int:
        """How many others listen, once the server answers."""
        while True:
            listeners = await self._say()
            if listeners is not None:
                return listeners
            await asyncio.sleep(_HEARTBEAT_SECONDS)

    async def _speak(self) -> None:
        while True:
            pause = self._fleet.look()
            self._fleet.speaks.clear()
            await self._say()
            try:
                async with asyncio.timeout(pause):
                    await self._fleet.speaks.wait()
            except TimeoutError:
                continue

    async def _say(self) -> int | None:
        try:
            return await self._channel.publish(self._fleet.word())
        except StoreUnavailable:
            return None

    async def _listen(self) -> None:
        while True:
            try:
                async for word in self._channel.listen():
                    self._fleet.hear(word)
            except StoreUnavailable:
                await asyncio.sleep(_HEARTBEAT_SECONDS)
