"""The queue as a small pure Python model: what each operation must do, without how."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum, auto


class State(Enum):
    """Of a segment: hands out rows, takes what is out, or takes nothing any more."""

    QUEUED = auto()
    CANCELLING = auto()
    CLOSED = auto()


@dataclass
class ModelSegment:
    """Where each row of a segment stands; ``sizes`` are the estimates."""

    tenant: str
    weight: int
    sizes: list[int]
    delayed: bool = False
    held: bool = False
    paused: bool = False
    state: State = State.QUEUED
    done: dict[int, bool] = field(default_factory=dict)
    waiting: set[int] = field(default_factory=set)
    later: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.waiting = set(range(len(self.sizes)))

    def left(self) -> list[int]:
        """Estimates of the rows that count against a quota."""
        if self.state is State.CLOSED:
            return []
        return [size for row, size in enumerate(self.sizes) if row not in self.done]


class QueueModel:
    """Segments and leases. Time does not exist: leases expire and delays end when told."""

    def __init__(self) -> None:
        self.segments: dict[str, ModelSegment] = {}
        self.leases: dict[str, set[tuple[str, int]]] = {}
        self.paused: set[tuple[str, str]] = set()
        self.spent: dict[str, float] = defaultdict(float)
        self.delivered = 0
        self.prompt = 0

    def leasable(self) -> set[tuple[str, int]]:
        """Rows that may be handed out."""
        if ("shard", "") in self.paused:
            return set()
        return {
            (name, row)
            for name, segment in self.segments.items()
            if segment.state is State.QUEUED and not (segment.paused or segment.held)
            if ("tenant", segment.tenant) not in self.paused
            for row in segment.waiting
            if not segment.delayed
        }

    def queued(self, tenant: str) -> tuple[int, int]:
        """Rows and tokens that count against the quota of ``tenant``."""
        left = [s.left() for s in self.segments.values() if s.tenant == tenant]
        return sum(map(len, left)), sum(map(sum, left))

    def least_charge(self, tenant: str) -> float:
        """Tokens of finished rows and estimates of rows that are out, per weight."""
        out = 0.0
        for name, row in set().union(*self.leases.values()):
            segment = self.segments[name]
            if (
                segment.tenant == tenant
                and row not in segment.done
                and segment.state is not State.CLOSED
            ):
                out += segment.sizes[row] / segment.weight
        return out + self.spent[tenant]

    def lease(self, lease_id: str, rows: list[tuple[str, int]]) -> None:
        """Rows were handed out; each was waiting and is handed out once."""
        assert len(rows) == len(set(rows))
        assert set(rows) <= self.leasable()
        for name, row in rows:
            self.segments[name].waiting.remove(row)
        self.leases[lease_id] = set(rows)

    def commit(self, lease_id: str, name: str, rows: list[int], *, ok: bool) -> tuple[int, int]:
        """(fresh, closed) of a commit."""
        self._take(lease_id, name, rows)
        segment = self.segments.get(name)
        if segment is None or segment.state is State.CLOSED:
            return 0, len(rows)
        fresh = [row for row in rows if row not in segment.done]
        for row in fresh:
            segment.done[row] = ok
            segment.waiting.discard(row)
            segment.later.discard(row)
            self.delivered += 1
            self.prompt += row + 1
            self.spent[segment.tenant] += (3 * row + 2) / segment.weight
        self._close(name)
        return len(fresh), 0

    def fail(self, lease_id: str, name: str, rows: list[int]) -> set[int]:
        """Rows that wait for another try after a failure."""
        taken = self._take(lease_id, name, rows)
        segment = self.segments.get(name)
        again = set()
        if segment is not None:
            again = {row for row in taken if row not in segment.done}
            if segment.state is State.QUEUED:
                segment.later |= again
            self._close(name)
        return again

    def give_back(self, lease_id: str) -> None:
        """A lease was released or ran out: what is not done waits again."""
        rows = self.leases.pop(lease_id, set())
        for name, row in rows:
            segment = self.segments[name]
            if row not in segment.done:
                segment.waiting.add(row)
        for name in {name for name, _ in rows}:
            self._close(name)

    def cancel(self, name: str) -> None:
        """What is out may still deliver."""
        segment = self.segments[name]
        if segment.state is State.QUEUED:
            segment.state = State.CANCELLING
            self._close(name)

    def time_comes(self) -> None:
        """Every delay is over."""
        for segment in self.segments.values():
            segment.delayed = False
            segment.waiting |= segment.later
            segment.later = set()

    def purge(self, name: str) -> None:
        """Nothing of the segment remains."""
        del self.segments[name]
        for rows in self.leases.values():
            rows -= {pair for pair in rows if pair[0] == name}

    def closed(self) -> Iterator[str]:
        """Segments whose final files may be written."""
        return (name for name, segment in self.segments.items() if segment.state is State.CLOSED)

    def _take(self, lease_id: str, name: str, rows: Iterable[int]) -> set[int]:
        held = self.leases.get(lease_id, set())
        taken = held & {(name, row) for row in rows}
        held -= taken
        return {row for _, row in taken}

    def _close(self, name: str) -> None:
        segment = self.segments[name]
        out = any(name == other for rows in self.leases.values() for other, _ in rows)
        if len(segment.done) == len(segment.sizes) or (
            segment.state is State.CANCELLING and not out
        ):
            segment.state = State.CLOSED
