"""Who waits is served in order."""

from gateway.simulator.queue import WaitingQueue
from gateway.simulator.sequence import Sequence


def _queue(*priorities: int, by_priority: bool) -> tuple[WaitingQueue, list[Sequence]]:
    queue = WaitingQueue(by_priority=by_priority)
    made = [Sequence(1, 1, priority=p, arrival=at) for at, p in enumerate(priorities)]
    for sequence in made:
        queue.push(sequence)
    return queue, made


def test_first_come_first_served_ignores_priorities() -> None:
    """As an engine without the flag does."""
    queue, made = _queue(5, 1, 3, by_priority=False)
    assert [queue.pop() for _ in made] == made


def test_lower_priorities_first_then_arrival() -> None:
    """As an engine with the flag does."""
    queue, made = _queue(5, 1, 5, 1, by_priority=True)
    assert [queue.pop() for _ in made] == [made[1], made[3], made[0], made[2]]


def test_who_was_preempted_keeps_the_place() -> None:
    """It came before those who wait."""
    queue, made = _queue(0, 0, 0, by_priority=False)
    first = queue.pop()
    queue.push(first)
    assert queue.head() is first
    assert len(queue) == len(made)


def test_who_left_is_skipped() -> None:
    """And no longer counted."""
    queue, made = _queue(0, 0, by_priority=False)
    queue.drop(made[0])
    assert len(queue) == 1
    assert queue.head() is made[1]
    queue.drop(made[1])
    assert queue.head() is None
