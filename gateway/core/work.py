"""What travels between the queue and those who use it. Plain frozen values, no Redis, no HTTP.

Words: a *segment* is the rows of one batch that share a model; a *shard* is a group of keys in
one cluster slot; a *run* is the part of one segment inside a lease.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum

from gateway.core.usage import Usage


@dataclass(frozen=True, slots=True)
class SegmentSpec:
    """One segment to enqueue.

    ``tokens`` is the estimate of each row (prompt + expected output), in dispatch order, as
    4-byte little-endian unsigned integers. ``window_ms`` counts from the server's now.
    No row is leased before ``delay_ms`` have passed, and none of a ``held`` segment before it is
    started. ``input_ref`` and ``index_ref`` are blob names.
    """

    segment: str
    job: str
    tenant: str
    model: str
    tokens: bytes
    window_ms: int
    input_ref: str
    index_ref: str
    endpoint: str
    weight: float = 1.0
    priority: int = 0
    delay_ms: int = 0
    held: bool = False

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.tokens) // 4


@dataclass(frozen=True, slots=True)
class Quota:
    """What one tenant may have queued for one model: rows and estimated tokens; 0 is any number."""

    rows: int = 0
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Turns:
    """Whose rows a lease holds: ``quantum`` rows of a tenant, then the next one's.

    A segment goes first, out of turn, when less than ``slack_ms`` would be left to its deadline
    after its remaining tokens at ``rate`` a second (0: unknown, they count as nothing).
    """

    quantum: int = 16
    rate: float = 0.0
    slack_ms: int = 0


@dataclass(frozen=True, slots=True)
class LeasedRow:
    """One row handed out. ``index`` is its place in the segment's dispatch order."""

    index: int
    error_tries: int = 0
    crash_tries: int = 0


@dataclass(frozen=True, slots=True)
class LeasedRun:
    """The rows of one segment inside a lease."""

    segment: str
    job: str
    tenant: str
    model: str
    endpoint: str
    input_ref: str
    index_ref: str
    deadline_ms: int
    rows: tuple[LeasedRow, ...]


@dataclass(frozen=True, slots=True)
class Lease:
    """Rows held by one dispatcher until ``ttl_ms`` pass without an extend.

    ``now_ms`` is what the server's clock said when it gave them.
    """

    id: str
    shard: str
    ttl_ms: int
    runs: tuple[LeasedRun, ...]
    now_ms: int

    @property
    def rows(self) -> int:
        """Number of rows over all runs."""
        return sum(len(run.rows) for run in self.runs)


@dataclass(frozen=True, slots=True)
class Extended:
    """Answer of an extend.

    ``alive`` maps a lease to the milliseconds it has left, ``gone`` are leases that expired,
    ``stopped`` are segments among the living leases whose rows must be aborted (cancelled
    or expired; rows of a paused one finish).
    """

    alive: dict[str, int]
    gone: tuple[str, ...]
    stopped: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PartRef:
    """Where a result line lies: part number, byte offset, byte length."""

    part: int
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class RowOutcome:
    """A finished row: its line is in the blob store already. ``ok`` decides the file it goes to."""

    index: int
    ref: PartRef
    usage: Usage
    ok: bool


@dataclass(frozen=True, slots=True)
class RunOutcomes:
    """Finished rows of one segment, as ``lease`` handed them out."""

    lease: str
    segment: str
    rows: Sequence[RowOutcome]


@dataclass(frozen=True, slots=True)
class Committed:
    """How many outcomes were new, repeated, or came after the segment was closed."""

    fresh: int
    duplicate: int
    closed: int


class TryKind(IntEnum):
    """Why a row comes back."""

    ERROR = 0
    CRASH = 1
    THROTTLE = 2


@dataclass(frozen=True, slots=True)
class RowFailure:
    """A row that did not finish. ``retry_after_ms`` of 0 leaves the delay to the queue.

    ``code`` is the ``error.code`` that its line gets if this was the last try. Of a crash,
    ``together`` is how many rows the target took with it.
    """

    index: int
    kind: TryKind
    code: str
    retry_after_ms: int = 0
    together: int = 1


@dataclass(frozen=True, slots=True)
class Nacked:
    """What became of failed rows: indices that wait again, and indices whose tries are used up.

    A used-up row stays leased; the caller writes its error line and commits it.
    """

    requeued: tuple[int, ...]
    exhausted: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DeadRow:
    """A row that was given up. ``code`` is that of its last error, empty when there was none.

    ``reason`` is ``max_deliveries`` (it crashed with its holders) or ``max_tries``.
    """

    segment: str
    index: int
    reason: str
    code: str


class SegmentStatus(StrEnum):
    """States of a segment. The last three are terminal."""

    QUEUED = "queued"
    CANCELLING = "cancelling"
    FINALIZING = "finalizing"
    COMPLETED = "completed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class SegmentView:
    """A segment as it stands. ``n = ok + bad + cancelled + expired`` once it is terminal."""

    segment: str
    job: str
    tenant: str
    model: str
    status: SegmentStatus
    n: int
    ok: int
    bad: int
    leased: int
    usage: Usage
    deadline_ms: int
    closing: SegmentStatus


@dataclass(frozen=True, slots=True)
class FinishClaim:
    """The right to write the final files of a segment, until a newer fence is given out.

    ``closing`` is what it ends as; ``ref`` where the result of its first row lies, if it has one;
    ``caught`` how many of its rows ran at its deadline.
    """

    segment: str
    job: str
    tenant: str
    fence: int
    closing: SegmentStatus
    ok: int
    bad: int
    usage: Usage
    ref: PartRef | None
    caught: int = 0
