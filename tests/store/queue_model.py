"""The queue as a small pure Python model: what each operation must do, without how."""

from dataclasses import dataclass, field


@dataclass
class ModelSegment:
    """Where each row of a segment stands."""

    rows: int
    open: bool = True
    done: dict[int, bool] = field(default_factory=dict)
    waiting: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.waiting = set(range(self.rows))


class QueueModel:
    """Segments and leases. Time does not exist: leases expire when told."""

    def __init__(self) -> None:
        self.segments: dict[str, ModelSegment] = {}
        self.leases: dict[str, set[tuple[str, int]]] = {}
        self.delivered = 0
        self.prompt = 0

    def leasable(self) -> set[tuple[str, int]]:
        """Rows that may be handed out."""
        return {
            (name, row)
            for name, segment in self.segments.items()
            if segment.open
            for row in segment.waiting
        }

    def lease(self, lease_id: str, rows: list[tuple[str, int]]) -> None:
        """Rows were handed out; each was waiting and is handed out once."""
        assert len(rows) == len(set(rows))
        assert set(rows) <= self.leasable()
        for name, row in rows:
            self.segments[name].waiting.remove(row)
        self.leases[lease_id] = set(rows)

    def commit(self, lease_id: str, name: str, rows: list[int], *, ok: bool) -> tuple[int, int]:
        """(fresh, closed) of a commit."""
        segment = self.segments[name]
        self.leases.get(lease_id, set()).difference_update((name, row) for row in rows)
        if not segment.open:
            return 0, len(rows)
        fresh = [row for row in rows if row not in segment.done]
        for row in fresh:
            segment.done[row] = ok
            segment.waiting.discard(row)
            self.delivered += 1
            self.prompt += row + 1
        segment.open = len(segment.done) < segment.rows
        return len(fresh), 0

    def give_back(self, lease_id: str) -> None:
        """A lease was released or ran out: what is not done waits again."""
        for name, row in self.leases.pop(lease_id, set()):
            segment = self.segments[name]
            if row not in segment.done:
                segment.waiting.add(row)
