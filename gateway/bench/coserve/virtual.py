"""Engines, interactive calls and offline lanes in virtual time: minutes pass in a second."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gateway.bench.coserve.host import EngineHost
from gateway.bench.coserve.record import CallRecord, Record
from gateway.bench.coserve.word import Teller
from gateway.bench.workload.trace import TracedCall

_LOOK_SECONDS = 1.0

Happening = Callable[[Sequence[EngineHost]], None]


class VirtualClock:
    """The time of a run."""

    def __init__(self) -> None:
        self.time = 0.0

    def now(self) -> float:
        """The same as ``monotonic``."""
        return self.time

    def monotonic(self) -> float:
        """Seconds since the run began."""
        return self.time

    async def sleep(self, seconds: float) -> None:
        """The time goes on by as much, at once."""
        self.time += seconds


@dataclass(frozen=True, slots=True)
class Change:
    """Something that happens to the engines ``at`` a moment."""

    at: float
    apply: Happening


class VirtualRun:
    """``calls`` go to the host of ``serving`` with the fewest of them; each lane feeds its host."""

    def __init__(
        self,
        hosts: Sequence[EngineHost],
        serving: Sequence[EngineHost],
        calls: Sequence[TracedCall],
        clock: VirtualClock,
        record: Record,
        *,
        changes: Sequence[Change] = (),
    ) -> None:
        self._hosts = hosts
        self._serving = serving
        self._calls = calls
        self._clock = clock
        self._record = record
        self._changes = sorted(changes, key=lambda change: change.at)
        self._teller = Teller([host.load for host in hosts])
        self._looked = 0.0

    def run(self, seconds: float, *, offline_from: float = 0.0, until_done: bool = False) -> None:
        """Run for ``seconds``; ``until_done``: until every row has ended, if that is sooner."""
        arrival, change, started = 0, 0, False
        while True:
            now = min(
                self._calls[arrival].at if arrival < len(self._calls) else math.inf,
                self._changes[change].at if change < len(self._changes) else math.inf,
                self._teller.due() if started else offline_from,
                *(host.due for host in self._hosts),
            )
            if now >= seconds or (until_done and started and self._done()):
                break
            self._clock.time = now
            if arrival < len(self._calls) and self._calls[arrival].at <= now:
                self._arrive(self._calls[arrival], now)
                arrival += 1
            if change < len(self._changes) and self._changes[change].at <= now:
                self._changes[change].apply(self._hosts)
                change += 1
            started = started or now >= offline_from
            self._go_on(now, told=started and self._tell(now), offline=started)
        self._record.preemptions = sum(host.engine.preemptions for host in self._hosts)
        lanes = [host.lane for host in self._hosts if host.lane is not None]
        self._record.taken_back = sum(lane.taken_back for lane in lanes)

    def _arrive(self, call: TracedCall, now: float) -> None:
        able = [host for host in self._serving if host.up]
        host = min(able, key=lambda h: (h.load.calls, h.engine.running))
        record = CallRecord(call.at, call.prompt, call.output)
        self._record.calls.append(record)
        host.take_call(record, now)
        self._teller.change()

    def _tell(self, now: float) -> bool:
        if now < self._teller.due():
            return False
        self._teller.tell(now)
        return True

    def _go_on(self, now: float, *, told: bool, offline: bool) -> None:
        """End the steps that are due, let lanes act, and begin the next steps."""
        for host in self._hosts:
            stepped = host.due <= now
            if stepped and host.finish_step(now):
                self._teller.change()
            if offline and host.up and (told or stepped or not self._record.rows):
                host.feed()
            host.begin_step(now)
        if now - self._looked >= _LOOK_SECONDS:
            self._look(now)

    def _look(self, now: float) -> None:
        self._looked = now
        record = self._record
        record.progress.append((now, record.prompt_tokens + record.output_tokens))
        for host in self._hosts:
            if host.lane is not None:
                record.windows.append((now, host.lane.window(), len(host.lane.running)))

    def _done(self) -> bool:
        return all(host.engine.idle for host in self._hosts)
