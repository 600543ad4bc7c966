"""A soak: start, fill, warm up, load with faults, rest, judge."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from gateway.metering.recovery import read_records
from tests.soak.caller import Fate, call, long_call
from tests.soak.faults import SLOW, USUAL, Faulty, Flapper
from tests.soak.gauge import Gauge, Reading
from tests.support.serve import RunningHeadway, headway
from tests.support.upstream import ScriptedUpstream

_LONGEST_FILLING = 14.0
_REST = 3.0
_TARGET = {
    "models": ["m"],
    "timeouts": {"connect": "1s", "first_byte": "1s", "idle": "700ms", "total": "20s"},
    "retry": {"attempts": 2, "base": "20ms", "cap": "100ms"},
    "lanes": {"interactive": {"max_in_flight": 256, "max_queue": 1024}},
}


@dataclass(frozen=True)
class Plan:
    """``rate`` calls a second; 0: ``load`` of what the plant reaches.

    ``up`` is how long the target that comes and goes stays; then it is away for two seconds. At
    most ``at_once`` calls are open at once, and so many are at the very beginning: what the gateway
    has for each of them is there when its memory is read first.
    """

    seconds: float
    seed: int = 0
    rate: float = 0.0
    load: float = 0.6
    share: float = 0.05
    leaving: float = 0.05
    warm_up: float = 20.0
    up: float = 28.0
    at_once: int = 300


@dataclass
class Outcome:
    """What was seen; ``faults`` are what must not be, each in a sentence.

    ``filled`` is the number of calls that were open at once at the very beginning.
    ``memory`` is that of the gateway's process each minute, in bytes: it tells a leak from a rise
    that ends.
    """

    calls: Counter[str] = field(default_factory=Counter)
    struck: Counter[str] = field(default_factory=Counter)
    rate: float = 0.0
    filled: int = 0
    readings: list[Reading] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


def soak(plan: Plan, folder: Path) -> Outcome:
    """Run ``plan`` in an empty folder."""
    chance = random.Random(plan.seed)
    steady, coming = ScriptedUpstream().start(), ScriptedUpstream().start()
    script = Faulty(chance, plan.share)
    for upstream in (steady, coming):
        upstream.on(lambda _: True, script)
    targets = {"steady": steady, "coming": coming}
    policy = {"targets": {n: {**_TARGET, "base_url": u.url} for n, u in targets.items()}}
    try:
        with headway(folder, policy, {"HEADWAY_DISPATCHERS": "0"}) as running:
            load = _Load(plan, running, [steady, coming], chance)
            outcome = asyncio.run(load.run(script, Flapper(coming, plan.up, 2.0)))
        _judge_ledger(outcome, load.fates, script, running.data_dir / "journal")
    finally:
        steady.stop()
        coming.stop()
    return outcome


class _Load:
    def __init__(
        self,
        plan: Plan,
        running: RunningHeadway,
        upstreams: list[ScriptedUpstream],
        chance: random.Random,
    ) -> None:
        self.fates: list[Fate] = []
        self._plan = plan
        self._port = int(running.root.rpartition(":")[2])
        self._upstreams = upstreams
        self._chance = chance
        self._gauge = Gauge(running, psutil.Process(running.pid), upstreams)

    async def run(self, script: Faulty, flapper: Flapper) -> Outcome:
        """Both halves of the load, with a rest and a reading after each."""
        rate = self._plan.rate or self._plan.load * await self._most()
        outcome = Outcome(rate=rate, filled=await self._fill(script, rate))
        works = (flapper.run(), self._forget(), self._watch_memory(outcome.memory))
        beside = [asyncio.create_task(work) for work in works]
        for seconds in (self._plan.warm_up, self._plan.seconds):
            await self._calls_at(rate, seconds)
            await asyncio.sleep(_REST)
            outcome.readings.append(await self._gauge.read())
        for task in beside:
            task.cancel()
        await asyncio.gather(*beside, return_exceptions=True)
        outcome.struck.update(script.struck.values())
        outcome.calls.update(fate.end for fate in self.fates)
        outcome.faults += [
            f"call {fate.id} ended as {fate.end} with {fate.status}, and no fault explains it"
            for fate in self.fates
            if not _explained(fate, script, flapper)
        ]
        outcome.faults += outcome.readings[1].leaks_since(outcome.readings[0])
        return outcome

    async def _most(self, seconds: float = 4.0) -> float:
        """Calls a second that 16 callers reach who do not wait."""
        end, before = time.monotonic() + seconds, len(self.fates)

        async def caller() -> None:
            while time.monotonic() < end:
                await self._one()

        await asyncio.gather(*(caller() for _ in range(16)))
        return (len(self.fates) - before) / seconds

    async def _fill(self, script: Faulty, rate: float) -> int:
        """Calls at ``rate`` that stay open until all are, and end; returns how many they were."""
        seconds = min(self._plan.at_once / rate, _LONGEST_FILLING)
        tokens = 2 + int(seconds / SLOW.token)
        script.pace = SLOW

        async def caller(after: float) -> None:
            await asyncio.sleep(after)
            self.fates.append(await long_call(self._port, tokens))

        count = int(seconds * rate)
        await asyncio.gather(*(caller(number / rate) for number in range(count)))
        script.pace = USUAL
        await asyncio.sleep(_REST)
        return count

    async def _calls_at(self, rate: float, seconds: float) -> None:
        """Calls at random moments, whether earlier ones have ended or not."""
        due = time.monotonic()
        end = due + seconds
        async with asyncio.TaskGroup() as group:
            running: set[asyncio.Task[Any]] = set()
            while due < end:
                await asyncio.sleep(due - time.monotonic())
                if len(running) < self._plan.at_once:
                    _start(group, running, self._one())
                due += self._chance.expovariate(rate)

    async def _one(self) -> None:
        self.fates.append(await call(self._port, self._chance, self._plan.leaving))

    async def _watch_memory(self, seen: list[int]) -> None:
        while True:
            seen.append(self._gauge.memory())
            await asyncio.sleep(60)

    async def _forget(self) -> None:
        """The upstreams' logs are not needed and would grow."""
        while True:
            await asyncio.sleep(1)
            for upstream in self._upstreams:
                upstream.requests.clear()


def _start(
    group: asyncio.TaskGroup, running: set[asyncio.Task[Any]], work: Coroutine[Any, Any, None]
) -> None:
    task = group.create_task(work)
    running.add(task)
    task.add_done_callback(running.discard)


def _explained(fate: Fate, script: Faulty, flapper: Flapper) -> bool:
    if fate.end in {"complete", "left"}:
        return True
    known = fate.id in script.struck or flapper.away_between(fate.began, fate.ended)
    return fate.end == "error" and known and (fate.status == 200 or fate.status >= 500)


def _judge_ledger(outcome: Outcome, fates: list[Fate], script: Faulty, journal: Path) -> None:
    """Each call that a client or a target knows is there, once, with the status the client saw."""
    records = list(read_records(journal))
    counts = Counter(record.intent.id for record in records)
    known = script.seen | {fate.id for fate in fates if fate.id}
    lost = known - set(counts)
    twice = [call for call, count in counts.items() if count > 1]
    outcome.faults += [f"call {call} is not in the ledger" for call in lost]
    outcome.faults += [f"call {call} is in the ledger more than once" for call in twice]
    status = {record.intent.id: record.outcome.status.value for record in records}
    right = {"complete": {"ok"}, "error": {"failed"}}
    outcome.faults += [
        f"call {fate.id} was {fate.end} and is recorded as {status[fate.id]}"
        for fate in fates
        if fate.end in right and fate.id in status and status[fate.id] not in right[fate.end]
    ]
