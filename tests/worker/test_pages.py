"""Pages go to those who need them and come back from those who have ended."""

import numpy as np
import pytest

from gateway.worker.pages import PAGE, PageTable, pages_for
from gateway.worker.sampling import SamplingParams
from gateway.worker.sequence import Sequence, State


def _sequence(slot: int) -> Sequence:
    sequence = Sequence([1], 5, SamplingParams(), None, print)
    sequence.slot, sequence.state = slot, State.RUNNING
    return sequence


def _table(slots: int = 3, width: int = 4, pages: int = 6) -> PageTable:
    return PageTable(np.zeros((slots + 1, width), np.int32), pages)


def test_a_page_is_taken_when_it_is_needed() -> None:
    """No two sequences share one, and nobody has page 0."""
    table, first, second = _table(), _sequence(0), _sequence(1)
    for length in (1, PAGE, PAGE + 1):
        table.cover(first, length)
    table.cover(second, 2 * PAGE)
    held = [*table.rows[0, :2].tolist(), *table.rows[1, :2].tolist()]
    assert len(set(held)) == 4
    assert 0 not in held
    assert table.rows[2:].sum() == 0
    assert table.free == 1


def test_pages_come_back_when_somebody_needs_one() -> None:
    """From a sequence that has ended, from one that lost its slot, never from a living one."""
    table, ended, moved, living = _table(), _sequence(0), _sequence(1), _sequence(2)
    table.cover(ended, 2 * PAGE)
    table.cover(moved, PAGE)
    table.cover(living, 2 * PAGE)
    with pytest.raises(MemoryError):
        table.cover(living, 3 * PAGE)
    ended.state, moved.slot = State.DONE, -1
    table.cover(living, 4 * PAGE)
    assert len(set(table.rows[2].tolist())) == 4
    assert table.free == 1


def test_a_slot_that_has_a_new_owner_begins_anew() -> None:
    """The pages of the one before are free."""
    table, before, after = _table(), _sequence(0), _sequence(0)
    table.cover(before, 3 * PAGE)
    table.cover(after, 1)
    assert table.free == 4


def test_a_part_of_a_page_is_a_page() -> None:
    """Rounded up."""
    assert [pages_for(tokens) for tokens in (0, 1, PAGE, PAGE + 1)] == [0, 1, 1, 2]
