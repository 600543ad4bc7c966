"""The rows of the models that share their targets: waiting, running, and where each starts."""

import asyncio
import math
from collections import deque
from collections.abc import Sequence
from functools import partial

from gateway.dispatch.held import HeldRow, Holdings
from gateway.dispatch.isolation import Isolation
from gateway.dispatch.lane import TargetLane, Visit
from gateway.dispatch.run import Failed, Finished, RowRunner, as_crash, given_up
from gateway.dispatch.settle import Settlement, Settler
from gateway.dispatch.verdict import Next, heard, moves_on, open_to
from gateway.dispatch.witness import Attempt, Sign, crashed
from gateway.pacing.window import rows_to_lease

_MOST_UNSETTLED = 2048


class Pool:
    """Starts a row the moment there is a place for it: no row waits for a batch to end.

    ``lanes`` are the targets in the order in which they are preferred; a row takes the first that
    has a place. Rows that crashed before are *suspects*: they run with nobody else at their target,
    so that the next crash points at them alone. ``pause`` seconds pass before a row that was
    refused for itself is sent again.
    """

    def __init__(
        self,
        lanes: Sequence[TargetLane],
        runner: RowRunner,
        settler: Settler,
        holdings: Holdings,
        pause: float,
    ) -> None:
        self._lanes = tuple(lanes)
        self._runner = runner
        self._settler = settler
        self._holdings = holdings
        self._pause = pause
        self._waiting: deque[HeldRow] = deque()
        self._moved: deque[HeldRow] = deque()
        self._isolation = Isolation(self._lanes)
        self._running = 0
        self._parked = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0
        self.changed = asyncio.Event()
        for lane in self._lanes:
            lane.users.append(self._start_ready)

    def wants(self) -> int:
        """Rows worth leasing now; none for targets with suspects, none while results pile up."""
        if self._settler.pending > _MOST_UNSETTLED:
            return 0
        window = sum(lane.window() for lane in self._lanes if lane.isolating is None)
        held = self._running + len(self._waiting) + len(self._moved) + self._parked
        return rows_to_lease(window, held) if window else 0

    async def take(self, rows: Sequence[HeldRow]) -> None:
        """As ``stage``."""
        self.stage(rows)

    def stage(self, rows: Sequence[HeldRow]) -> None:
        """Take rows of a lease and start what may start."""
        for row in rows:
            (self._isolation.rows if row.row.crash_tries else self._waiting).append(row)
        self._start_ready()

    def drop(self, row: HeldRow) -> bool:
        """Stop a row: it never starts, or is aborted. False: its result is on the way already."""
        if row.ended or row.dropped:
            return False
        row.dropped = True
        if row.task is not None:
            row.task.cancel()
        self._start_ready()
        return True

    def close(self) -> None:
        """Start nothing any more."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()

    async def idle(self) -> None:
        """Wait until no row runs and every result was handed to the settler."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    def _start_ready(self) -> None:
        if not self._closed:
            soon = min(self._start_suspects(), self._start_moved(), self._start_waiting())
            if soon < math.inf:
                self._come_back(soon)
        self.changed.set()

    def _start_suspects(self) -> float:
        """Start suspects where they are alone; returns the seconds until more may start."""
        rows = self._isolation.rows
        while self._pruned(rows):
            lane = self._isolation.lane_for(rows[0])
            if lane is None or not self._isolation.beside(rows[0], lane):
                return math.inf
            if wait := lane.wait(rows[0].source.tokens, suspect=True):
                return wait
            self._start(rows.popleft(), lane)
        self._isolation.over()
        return math.inf

    def _start_moved(self) -> float:
        """The same for rows that one target failed; there are few."""
        soon = math.inf
        for _ in range(len(self._moved)):
            row = self._moved.popleft()
            if not self._holdings.may_start(row):
                self._holdings.not_started(row)
                continue
            lane, wait = self._place(row)
            if lane is None:
                self._moved.append(row)
                soon = min(soon, wait)
            else:
                self._start(row, lane)
        return soon

    def _start_waiting(self) -> float:
        """The same for all others, in their order."""
        rows = self._waiting
        while self._pruned(rows):
            lane, wait = self._place(rows[0])
            if lane is None:
                return wait
            self._start(rows.popleft(), lane)
        return math.inf

    def _place(self, row: HeldRow) -> tuple[TargetLane | None, float]:
        """The lane where ``row`` may start now, or None and the seconds until it may."""
        soon = math.inf
        working = sum(lane.gate.healthy for lane in self._lanes)
        for lane in self._lanes:
            if lane.isolating is not None or not open_to(row, lane):
                continue
            elsewhere = working > lane.gate.healthy
            if not (wait := lane.wait(row.source.tokens, elsewhere=elsewhere)):
                return lane, 0.0
            soon = min(soon, wait)
        return None, soon

    def _pruned(self, queue: deque[HeldRow]) -> deque[HeldRow]:
        while queue and not self._holdings.may_start(queue[0]):
            self._holdings.not_started(queue.popleft())
        return queue

    def _come_back(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time() + seconds
        if self._timer is not None:
            if self._due <= due:
                return
            self._timer.cancel()
        self._due = due
        self._timer = loop.call_at(due, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self._start_ready()

    def _start(self, row: HeldRow, lane: TargetLane) -> None:
        self._running += not row.row.crash_tries
        visit = lane.enter(row, suspect=bool(row.row.crash_tries))
        row.attempt = Attempt()
        row.task = asyncio.create_task(self._run(row, visit))
        self._tasks.add(row.task)
        row.task.add_done_callback(partial(self._over, row, visit))

    def _over(self, row: HeldRow, visit: Visit, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if visit.lane.running.get(row) is visit:
            self._left(row, visit.lane)  # cancelled before its first step: nothing of it ran

    async def _run(self, row: HeldRow, visit: Visit) -> None:
        lane, attempt = visit.lane, row.attempt
        try:
            result = await self._runner.run(row, visit)
            row.ended = True
            attempt.sign = result.sign
            fate = heard(row, visit, result, self._lanes)
        finally:
            self._left(row, lane)
        if result.sign is Sign.LOST and isinstance(result, Failed):
            beside = [other.attempt for other in lane.running]
            lane.call()
            result, fate = await self._lost(row, lane, result, beside)
        self._go_on(row, result, fate)
        lane.call()

    def _left(self, row: HeldRow, lane: TargetLane) -> None:
        lane.leave(row)
        self._running -= not row.row.crash_tries
        if row.ended:
            return
        row.attempt.sign = Sign.STOPPED
        if row.makes_way and not row.dropped:
            self._again(row)
        else:
            self._holdings.settled(row)
        lane.call()

    async def _lost(
        self, row: HeldRow, lane: TargetLane, result: Failed, beside: Sequence[Attempt]
    ) -> tuple[Failed, Next]:
        """A crash is the queue's business; for one lost connection there may be another target."""
        if await crashed(beside):
            lane.gate.crashed()
            return as_crash(row, result, lane.gate.lost_of_late()), Next.SETTLE
        return result, Next.AGAIN if moves_on(row, lane, self._lanes) else Next.SETTLE

    def _go_on(self, row: HeldRow, result: Finished | Failed, fate: Next) -> None:
        if fate is Next.AGAIN and not row.dropped:
            self._again(row)
        elif fate is Next.LATER and not row.dropped:
            row.task, row.ended = None, False
            self._parked += 1
            asyncio.get_running_loop().call_later(self._pause, self._unpark, row)
        else:
            if fate is Next.GIVE_UP and isinstance(result, Failed):
                result = given_up(result)
            self._settler.put(Settlement.of(row, result))

    def _unpark(self, row: HeldRow) -> None:
        self._parked -= 1
        self._again(row)
        self._start_ready()

    def _again(self, row: HeldRow) -> None:
        """The row keeps its place in the line and its tries."""
        row.task, row.ended, row.makes_way = None, False, False
        if row.row.crash_tries:
            self._isolation.rows.appendleft(row)
        else:
            (self._moved if row.barred else self._waiting).appendleft(row)
