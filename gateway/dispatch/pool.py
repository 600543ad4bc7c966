"""The rows of one target: waiting, running, and the rules for starting the next one."""

import asyncio
from collections import deque
from collections.abc import Sequence

from gateway.dispatch.gate import Gate
from gateway.dispatch.held import HeldRow, Holdings
from gateway.dispatch.pacing import Pacer, rows_to_lease
from gateway.dispatch.run import Failed, Finished, RowRunner, as_crash
from gateway.dispatch.settle import Settlement, Settler
from gateway.dispatch.witness import Attempt, Sign, crashed

_MOST_UNSETTLED = 2048


class Pool:
    """Starts a row the moment there is a place for it: no row waits for a batch to end.

    Rows that crashed before are *suspects*: they run with nobody else, so that the next crash
    points at them alone.
    """

    def __init__(
        self, pacer: Pacer, gate: Gate, runner: RowRunner, settler: Settler, holdings: Holdings
    ) -> None:
        self._pacer = pacer
        self._gate = gate
        self._runner = runner
        self._settler = settler
        self._holdings = holdings
        self._waiting: deque[HeldRow] = deque()
        self._suspects: deque[HeldRow] = deque()
        self._running: set[HeldRow] = set()
        self._prefilling: set[HeldRow] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._alone = False
        self._closed = False
        self._timer: asyncio.TimerHandle | None = None
        self.changed = asyncio.Event()

    def wants(self) -> int:
        """Rows worth leasing now; none while there are suspects or results pile up."""
        suspects = self._suspects or (self._alone and self._running)
        if suspects or self._settler.pending > _MOST_UNSETTLED:
            return 0
        return rows_to_lease(self._pacer.window(), len(self._running) + len(self._waiting))

    def stage(self, rows: Sequence[HeldRow]) -> None:
        """Take rows of a lease and start what may start."""
        for row in rows:
            (self._suspects if row.row.crash_tries else self._waiting).append(row)
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
        while not self._closed and (row := self._next()) is not None:
            self._start(row)
        self.changed.set()

    def _next(self) -> HeldRow | None:
        """The row to start now, taken off its queue; None when there is none or it must wait."""
        queue = self._pruned(self._suspects) or self._pruned(self._waiting)
        if not queue:
            return None
        suspect = queue is self._suspects
        if self._running and suspect is not self._alone:
            return None
        if not self._gate.places():
            self._come_back(self._gate.wait())
            return None
        if not self._pacer.places(len(self._running), len(self._prefilling)):
            return None
        self._alone = suspect
        return queue.popleft()

    def _pruned(self, queue: deque[HeldRow]) -> deque[HeldRow]:
        while queue and not self._holdings.may_start(queue[0]):
            self._holdings.settled(queue.popleft())
        return queue

    def _come_back(self, seconds: float) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(seconds, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self._start_ready()

    def _start(self, row: HeldRow) -> None:
        self._gate.asking()
        self._running.add(row)
        self._prefilling.add(row)
        row.attempt = Attempt()
        row.task = asyncio.create_task(self._run(row))
        self._tasks.add(row.task)
        row.task.add_done_callback(self._tasks.discard)

    async def _run(self, row: HeldRow) -> None:
        attempt = row.attempt
        try:
            result = await self._runner.run(row, lambda: self._prefilling.discard(row))
            row.ended = True
            attempt.sign = result.sign
            charged = self._heard(result.sign)
            beside = [other.attempt for other in self._running if other is not row]
        finally:
            self._running.discard(row)
            self._prefilling.discard(row)
            if not row.ended:
                attempt.sign = Sign.STOPPED
                self._holdings.settled(row)
            self._start_ready()
        if not charged and not row.dropped:
            self._again(row)
        else:
            await self._hand_on(row, result, beside)

    def _heard(self, sign: Sign) -> bool:
        """Tell the gate what an attempt found; False: it does not count, and is made again."""
        if sign is Sign.ANSWERED:
            self._gate.answered()
        elif sign is Sign.LOST:
            self._gate.lost()
        elif sign is Sign.REFUSED:
            return self._gate.refused()
        return True

    async def _hand_on(
        self, row: HeldRow, result: Finished | Failed, beside: Sequence[Attempt]
    ) -> None:
        """Pass the result to the settler, charged as what it turned out to be."""
        if isinstance(result, Failed) and result.sign is Sign.LOST and await crashed(beside):
            result = as_crash(row, result)
        self._settler.put(Settlement.of(row, result))

    def _again(self, row: HeldRow) -> None:
        """The target takes no connections for the moment: the row keeps its place and its tries."""
        row.task, row.ended = None, False
        (self._suspects if row.row.crash_tries else self._waiting).appendleft(row)
        self._start_ready()
