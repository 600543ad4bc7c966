"""From results to the record: lines into part files, then one commit, in groups.

A result is safe once its commit was answered. Until then it is kept and tried again, over outages
of the queue and of the disk.
"""

import asyncio
import contextlib
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from gateway.core.clock import Clock
from gateway.core.errors import Unavailable
from gateway.core.work import RowOutcome, RunOutcomes
from gateway.dispatch.commits import Commits
from gateway.dispatch.held import HeldRow, Holdings
from gateway.dispatch.run import Failed, Finished, given_up
from gateway.dispatch.speed import Speed
from gateway.metering.hours import hour_of
from gateway.store.job_files import is_job
from gateway.store.part_notes import PartNote
from gateway.store.parts import PartFiles
from gateway.store.queue import QueueClient, RetryRule

_T = TypeVar("_T")

log = logging.getLogger(__name__)

_GROUP = 16
_LINGER = 0.02
_MOST = 256
_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 2.0


@dataclass(frozen=True, slots=True)
class Settlement:
    """One row's result on its way. ``held`` is None for a row that died without a holder."""

    shard: str
    lease_id: str
    segment: str
    job: str
    index: int
    result: Finished | Failed
    held: HeldRow | None = None

    @classmethod
    def of(cls, held: HeldRow, result: Finished | Failed) -> "Settlement":
        """The result of a held row."""
        run, lease = held.run, held.lease
        return cls(lease.shard, lease.id, run.segment, run.job, held.row.index, result, held)


class Settler:
    """Collects results until there are 16 or 20 ms have passed, then writes and commits them.

    ``job_done`` is set when a job of one request was committed: it is finished at once.
    """

    def __init__(
        self,
        queue: QueueClient,
        parts: PartFiles,
        holdings: Holdings,
        retry: RetryRule,
        clock: Clock,
        job_done: asyncio.Event | None = None,
    ) -> None:
        self._queue = queue
        self._commits = Commits(queue)
        self._parts = parts
        self._holdings = holdings
        self._retry = retry
        self._clock = clock
        self._job_done = job_done or asyncio.Event()
        self.speed = Speed(clock)
        self._waiting: list[Settlement] = []
        self._some = asyncio.Event()
        self._enough = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()
        self.pending = 0

    def put(self, item: Settlement) -> None:
        """Take over one result."""
        self._waiting.append(item)
        self.pending += 1
        self._empty.clear()
        self._some.set()
        if len(self._waiting) >= _GROUP:
            self._enough.set()

    async def drained(self) -> None:
        """Wait until everything taken over is settled."""
        await self._empty.wait()

    async def run(self) -> None:
        """Settle until cancelled."""
        while True:
            await self._some.wait()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._enough.wait(), _LINGER)
            group, self._waiting = self._waiting[:_MOST], self._waiting[_MOST:]
            if not self._waiting:
                self._some.clear()
                self._enough.clear()
            await self._settle(group)
            self.pending -= len(group)
            if self.pending == 0:
                self._empty.set()

    async def _settle(self, group: Sequence[Settlement]) -> None:
        finished = [item for item in group if isinstance(item.result, Finished)]
        failed = [item for item in group if isinstance(item.result, Failed)]
        for items in _by_segment(failed).values():
            finished += await self._unless_broken(self._nack(items), items) or []
        by_job: dict[str, list[Settlement]] = defaultdict(list)
        for item in finished:
            by_job[item.job].append(item)
        await asyncio.gather(
            *(self._unless_broken(self._commit(job, items), items) for job, items in by_job.items())
        )

    async def _unless_broken(self, work: Awaitable[_T], items: Sequence[Settlement]) -> _T | None:
        """Do the ``work`` of settling ``items``; what cannot be settled is let go.

        Its lease runs out and it is tried again, as if its dispatcher had died.
        """
        try:
            return await work
        except Exception:
            log.exception("%s: %d results cannot be settled", items[0].job, len(items))
            for item in items:
                self._settled(item)
            return None

    async def _nack(self, items: Sequence[Settlement]) -> list[Settlement]:
        """Hand failed rows back; those without a try left come back with their last line."""
        first = items[0]
        failures = [i.result.failure for i in items if isinstance(i.result, Failed)]
        answer = await self._insist(
            lambda: self._queue.nack(
                first.shard, first.lease_id, first.segment, failures, self._retry
            )
        )
        exhausted = set(answer.exhausted)
        for item in items:
            if item.index not in exhausted:
                self._settled(item)
        return [_given_up(item) for item in items if item.index in exhausted]

    async def _commit(self, job: str, items: Sequence[Settlement]) -> None:
        hour = hour_of(self._clock.now())
        lines = [_line(item, hour) for item in items]
        refs = await self._insist(lambda: self._parts.append(job, lines))
        outcomes: dict[tuple[str, str, str], list[RowOutcome]] = defaultdict(list)
        for item, (note, _), ref in zip(items, lines, refs, strict=True):
            outcome = RowOutcome(note.index, ref, note.usage, note.ok)
            outcomes[item.shard, item.lease_id, item.segment].append(outcome)
        await asyncio.gather(*(self._send(*key, rows, hour) for key, rows in outcomes.items()))
        if is_job(job):
            self._job_done.set()
        for item in items:
            self._settled(item)

    async def _send(
        self, shard: str, lease_id: str, segment: str, rows: Sequence[RowOutcome], hour: str
    ) -> None:
        run = RunOutcomes(lease_id, segment, rows)
        answer = await self._insist(lambda: self._commits.send(shard, run, hour))
        if answer.fresh:
            self.speed.note(shard, sum(row.usage.prompt + row.usage.completion for row in rows))
        if answer.duplicate or answer.closed:
            log.info("%s: %d repeated, %d late", segment, answer.duplicate, answer.closed)

    async def _insist(self, attempt: Callable[[], Awaitable[_T]]) -> _T:
        """Try until it works; a repeated commit or append is harmless."""
        pause = _FIRST_PAUSE
        while True:
            try:
                return await attempt()
            except (Unavailable, OSError) as error:
                log.warning("results wait: %s", error)
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _settled(self, item: Settlement) -> None:
        if item.held is not None:
            self._holdings.settled(item.held)


def _line(item: Settlement, hour: str) -> tuple[PartNote, bytes]:
    """What goes to the part: the line, and all that its commit says."""
    result = item.result
    assert isinstance(result, Finished)
    place = int(item.segment.rpartition(".")[2])
    return PartNote(place, item.index, result.ok, result.usage, hour), result.line


def _given_up(item: Settlement) -> Settlement:
    assert isinstance(item.result, Failed)
    result = given_up(item.result)
    return Settlement(
        item.shard, item.lease_id, item.segment, item.job, item.index, result, item.held
    )


def _by_segment(items: Sequence[Settlement]) -> dict[tuple[str, str, str], list[Settlement]]:
    groups: dict[tuple[str, str, str], list[Settlement]] = defaultdict(list)
    for item in items:
        groups[item.shard, item.lease_id, item.segment].append(item)
    return groups
