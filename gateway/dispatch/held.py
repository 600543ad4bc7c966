"""What this dispatcher holds: leases, and for each row where it stands."""

import asyncio
import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from gateway.batches.rows import BatchRow
from gateway.core.clock import Clock
from gateway.core.work import Extended, Lease, LeasedRow, LeasedRun
from gateway.dispatch.witness import Attempt


@dataclass(slots=True, eq=False)
class HeldRow:
    """One leased row: waiting, running (``task``), or ended with its result on the way.

    From ``ends`` on, in monotonic seconds, its deadline has passed and it may not start.
    ``attempt`` is its latest call. ``dropped`` says that the row must not go on, ``makes_way``
    that its call is given up and the row waits again, as it did ``taken_back`` times.
    ``barred`` are the targets that failed it, each with the number of its outages then;
    ``throttles`` counts refusals while others were taken, as last ``heard``.
    """

    lease: "HeldLease"
    run: LeasedRun
    row: LeasedRow
    source: BatchRow
    ends: float = math.inf
    task: asyncio.Task[None] | None = None
    ended: bool = False
    attempt: Attempt = field(default_factory=Attempt)
    dropped: bool = False
    makes_way: bool = False
    taken_back: int = 0
    barred: dict[str, int] | None = None
    throttles: int = 0
    heard: tuple[str, int] | None = None

    @property
    def name(self) -> tuple[str, int]:
        """Segment and index: the same in every lease."""
        return self.run.segment, self.row.index


@dataclass(slots=True, eq=False)
class HeldLease:
    """A lease with the rows of it that are not settled. ``until`` is monotonic seconds."""

    id: str
    shard: str
    ttl_ms: int
    until: float
    rows: dict[tuple[str, int], HeldRow] = field(default_factory=dict)


def ends_at(run: LeasedRun, now_ms: int, asked: float) -> float:
    """When the deadline of ``run`` passes here, at the latest: it was leased after ``asked``.

    Never, if it had passed in the queue: there the clock leapt, and deadlines do not count.
    """
    left_ms = run.deadline_ms - now_ms
    return asked + left_ms / 1000 if left_ms > 0 else math.inf


class Holdings:
    """All leases of this process; the renewer keeps them, the settler empties them."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._leases: dict[str, HeldLease] = {}
        self._late: list[HeldRow] = []

    def now(self) -> float:
        """Monotonic seconds: to be noted before the queue is asked, as its answer may come late."""
        return self._clock.monotonic()

    def take(self, lease: Lease, asked: float) -> HeldLease:
        """Start to hold ``lease``, asked for then; its rows are added as they are read."""
        held = HeldLease(lease.id, lease.shard, lease.ttl_ms, asked + lease.ttl_ms / 1000)
        self._leases[lease.id] = held
        return held

    def __len__(self) -> int:
        return len(self._leases)

    def by_shard(self) -> dict[str, list[HeldLease]]:
        """The leases of each shard."""
        shards: dict[str, list[HeldLease]] = {}
        for lease in self._leases.values():
            shards.setdefault(lease.shard, []).append(lease)
        return shards

    def settled(self, row: HeldRow) -> None:
        """The queue knows what became of ``row``; a lease without rows is no longer held."""
        row.lease.rows.pop((row.run.segment, row.row.index), None)
        if not row.lease.rows:
            self._leases.pop(row.lease.id, None)

    def forget(self, lease_id: str) -> None:
        """The lease has nothing left to hold."""
        self._leases.pop(lease_id, None)

    def extended(self, answer: Extended, asked: float) -> list[HeldRow]:
        """Note what an extend, asked for then, said; the rows that must not go on are returned.

        Those are all rows of stopped segments, the waiting rows of leases that are gone: others may
        hold them now, and rows that did not start before their deadline. Running rows of a gone
        lease finish: first commit wins.
        """
        for lease_id, left_ms in answer.alive.items():
            if lease_id in self._leases:
                self._leases[lease_id].until = asked + left_ms / 1000
        rows, self._late = self._late, []
        for lease_id in answer.gone:
            lease = self._leases.get(lease_id)
            rows += [] if lease is None else [r for r in lease.rows.values() if r.task is None]
        stopped = set(answer.stopped)
        if stopped:
            rows += [r for r in self.rows() if r.run.segment in stopped]
        return rows

    def may_start(self, row: HeldRow) -> bool:
        """Whether the row is still ours, and in time: its lease has not run out unextended."""
        return not row.dropped and self._clock.monotonic() < min(row.lease.until, row.ends)

    def not_started(self, row: HeldRow) -> None:
        """``row`` may not start and waits no more. If it is late, the queue gets it back."""
        if row.dropped or self._clock.monotonic() >= row.lease.until:
            self.settled(row)
        else:
            self._late.append(row)

    def rows(self) -> Iterator[HeldRow]:
        """Every row that is not settled."""
        for lease in list(self._leases.values()):
            yield from list(lease.rows.values())
