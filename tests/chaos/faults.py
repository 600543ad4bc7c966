"""Strikes the parts of a round, one after the other, each when its victim has work in hand."""

import contextlib
import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from typing import TypeVar

from tests.chaos.client import Client
from tests.chaos.history import History
from tests.chaos.plan import LEASE_SECONDS, Fault, RoundPlan, Strike
from tests.chaos.plant import Plant

_T = TypeVar("_T")
_POLL = 0.02
_AT_WORK_SECONDS = 15.0
_PROGRESS_SECONDS = 20.0
_TRIES = 3


class Injector:
    """``counted`` are the strikes whose victim was at work in that moment; others do not count."""

    def __init__(self, plant: Plant, client: Client) -> None:
        self._plant = plant
        self._history = History(plant.folder / "strikes.jsonl")
        self._client = client
        self.counted: Counter[Fault] = Counter()
        self._strike_at: dict[Fault, Callable[[Strike], bool]] = {
            Fault.DISPATCHER: self._dispatcher,
            Fault.WORKER: self._worker,
            Fault.SERVER: self._server,
            Fault.GATEWAY: self._gateway,
            Fault.FREEZE: self._freeze,
            Fault.LOST_REPLY: self._lost_reply,
            Fault.SLOW: self._slow,
            Fault.CUT: self._cut,
        }

    def run(self, plan: RoundPlan) -> None:
        """Every strike in turn, as long as there is work."""
        for strike in plan.strikes:
            self._wait_for_rows(strike.at * plan.rows)
            for _ in range(_TRIES):
                if self._client.finished:
                    return
                self._history.note("invoke", strike.fault, done=self._client.done())
                counted = self._strike_at[strike.fault](strike)
                self._history.note("ok", strike.fault, counted=counted)
                if counted:
                    self.counted[strike.fault] += 1
                    break

    def _wait_for_rows(self, due: float) -> None:
        """Until so many are done, but not for ever: what went before may have stopped all of it."""
        self._until(lambda: self._client.done() >= due, _PROGRESS_SECONDS)

    def _dispatcher(self, strike: Strike) -> bool:
        pid = self._someone(self._busy_dispatchers, strike)
        time.sleep(strike.pause)
        if pid is None or pid not in self._busy_dispatchers():
            return False
        self._plant.kill_dispatcher(pid)
        return True

    def _worker(self, strike: Strike) -> bool:
        self._until(self._plant.answering)
        time.sleep(strike.pause)
        if not self._plant.answering():
            return False
        self._plant.kill_upstream()
        return True

    def _server(self, strike: Strike) -> bool:
        self._until(self._plant.leases)
        time.sleep(strike.pause)
        pid = self._plant.server()
        if pid is None or not self._plant.leases():
            return False
        self._plant.kill_server(pid)
        return True

    def _gateway(self, strike: Strike) -> bool:
        self._until(self._plant.leases)
        time.sleep(strike.pause)
        if not self._plant.leases():
            return False
        self._plant.kill_gateway()
        return True

    def _freeze(self, strike: Strike) -> bool:
        """Half a lease to three of them; a dispatcher, the queue server or the gateway."""
        self._until(self._plant.leases)
        kinds: list[Callable[[], list[int | None]]] = [
            lambda: list(self._busy_dispatchers()),
            lambda: list(self._busy_dispatchers()),
            lambda: [self._plant.server()],
            lambda: [self._plant.gateway.pid],
            lambda: [self._plant.upstream],
        ]
        pids = kinds[int(strike.victim * len(kinds))]()
        time.sleep(strike.pause)
        if not pids or pids[0] is None or not self._plant.leases():
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(pids[0], signal.SIGSTOP)
            time.sleep(LEASE_SECONDS * (0.5 + 2.5 * strike.size))
            os.kill(pids[0], signal.SIGCONT)
            return True
        return False

    def _lost_reply(self, strike: Strike) -> bool:
        """The next replies to scripts never arrive."""
        proxy = self._plant.proxy
        assert proxy is not None
        self._until(self._plant.leases)
        time.sleep(strike.pause)
        before = proxy.lost
        proxy.to_lose = 1 + int(3 * strike.size)
        self._until(lambda: proxy.to_lose == 0, 3)
        proxy.to_lose = 0
        return proxy.lost > before

    def _slow(self, strike: Strike) -> bool:
        """Each request takes up to half a second longer for two leases."""
        proxy = self._plant.proxy
        assert proxy is not None
        self._until(self._plant.leases)
        proxy.delay = 0.005 + 0.495 * strike.size
        time.sleep(2 * LEASE_SECONDS)
        proxy.delay = 0.0
        return True

    def _cut(self, strike: Strike) -> bool:
        proxy = self._plant.proxy
        assert proxy is not None
        self._until(self._plant.leases)
        time.sleep(strike.pause)
        return proxy.cut() > 0

    def _busy_dispatchers(self) -> list[int]:
        leases = self._plant.leases()
        return [pid for pid in self._plant.dispatchers() if leases.get(pid)]

    def _someone(self, candidates: Callable[[], list[int]], strike: Strike) -> int | None:
        found = self._until(candidates)
        return found[int(strike.victim * len(found))] if found else None

    def _until(self, look: Callable[[], _T], seconds: float = _AT_WORK_SECONDS) -> _T:
        """What ``look`` finds once it is true, or the last it found."""
        end = time.monotonic() + seconds
        while not (found := look()) and time.monotonic() < end and not self._client.finished:
            time.sleep(_POLL)
        return found
