"""The offline backlog: rows in the order in which they are wanted."""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import repeat


@dataclass(slots=True, eq=False)
class Row:
    """One offline request. ``job`` is the number of its job, ``taken_back`` how often it was."""

    prompt: int
    output: int
    job: int = 0
    taken_back: int = 0
    started: float = 0.0
    first_at: float = 0.0


@dataclass(frozen=True, slots=True)
class OfflineJob:
    """Rows with a deadline, in seconds from the start of the run."""

    rows: tuple[tuple[int, int], ...]
    deadline: float


class Backlog:
    """Rows, first those that were taken back, then in order; without end, or job after job."""

    def __init__(self, lengths: Iterable[tuple[int, int]], jobs: Iterable[int] = repeat(0)) -> None:
        self._fresh: Iterator[tuple[tuple[int, int], int]] = zip(lengths, jobs, strict=False)
        self._again: deque[Row] = deque()

    @classmethod
    def of_jobs(cls, jobs: Iterable[OfflineJob]) -> "Backlog":
        """The soonest deadline first, as the queue leases them."""
        order = sorted(enumerate(jobs), key=lambda item: item[1].deadline)
        lengths = [lengths for _, job in order for lengths in job.rows]
        return cls(lengths, [number for number, job in order for _ in job.rows])

    def take(self) -> Row | None:
        """The next row; None when there is none."""
        if self._again:
            return self._again.popleft()
        found = next(self._fresh, None)
        return None if found is None else Row(*found[0], job=found[1])

    def give_back(self, row: Row) -> None:
        """A row that was not begun keeps its place in the line."""
        row.taken_back += 1
        self._again.appendleft(row)
