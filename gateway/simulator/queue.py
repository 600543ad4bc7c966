"""Sequences that wait for a slot."""

from heapq import heappop, heappush

from gateway.simulator.sequence import Sequence, State


class WaitingQueue:
    """First come, first served; with ``by_priority`` the lowest number first.

    A preempted sequence keeps the place it came with. One that is done is skipped when its turn
    comes.
    """

    def __init__(self, *, by_priority: bool) -> None:
        self.by_priority = by_priority
        self._heap: list[tuple[tuple[int, int], Sequence]] = []
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def rank(self, sequence: Sequence) -> tuple[int, int]:
        """The order of service; arrivals differ, so no two are equal."""
        return sequence.priority if self.by_priority else 0, sequence.arrival

    def push(self, sequence: Sequence) -> None:
        """Wait for a slot."""
        sequence.state = State.WAITING
        heappush(self._heap, (self.rank(sequence), sequence))
        self._count += 1

    def head(self) -> Sequence | None:
        """Who is next."""
        while self._heap and self._heap[0][1].state is not State.WAITING:
            heappop(self._heap)
        return self._heap[0][1] if self._heap else None

    def pop(self) -> Sequence:
        """Take the next one; ``head`` said there is one."""
        self._count -= 1
        return heappop(self._heap)[1]

    def drop(self, sequence: Sequence) -> None:
        """It waits no more."""
        sequence.state = State.DONE
        self._count -= 1
