"""A cursor holds any set of rows, small, and is refused elsewhere."""

import random

import pytest

from gateway.batches.cursor import MOST_RANGES, Cursor, RowSet
from gateway.core.errors import InvalidRequest


def _set(rows: list[int]) -> RowSet:
    made = RowSet()
    for row in rows:
        made.add(row)
    return made


@pytest.mark.parametrize("seed", range(20))
def test_a_row_set_is_a_set(seed: int) -> None:
    """Added in any order: count, members, ranges and gaps are those of a set."""
    chance = random.Random(seed)
    rows = chance.sample(range(300), 150)
    made = _set(rows)
    assert len(made) == len(rows)
    assert [row for row in range(320) if row in made] == sorted(rows)
    assert [row for start, end in made.ranges() for row in range(start, end)] == sorted(rows)
    missing = [row for start, end in made.gaps(320) for row in range(start, end)]
    assert missing == sorted(set(range(320)) - set(rows))
    assert not any(made.add(row) for row in rows)


def test_a_copy_is_its_own() -> None:
    """What is added to it stays there."""
    made = _set([1, 2])
    made.copy().add(3)
    assert 3 not in made


def test_a_full_set_takes_what_makes_it_smaller() -> None:
    """With the most ranges no new one begins, and the lowest missing row is always taken."""
    made = _set([2 * n for n in range(1, MOST_RANGES + 1)])
    assert not made.add(2 * MOST_RANGES + 2)
    for row in range(2 * MOST_RANGES + 2):
        made.add(row)
    assert made.ranges() == [(0, 2 * MOST_RANGES + 2)]
    assert made.add(2 * MOST_RANGES + 7)


@pytest.mark.parametrize("seed", range(10))
def test_a_cursor_says_which_rows(seed: int) -> None:
    """Text and back, over several segments; an empty text is the beginning."""
    chance = random.Random(seed)
    cursor = Cursor("batch_1")
    for place in range(3):
        for row in chance.sample(range(50_000), 100):
            cursor.rows(place).add(row)
    again = Cursor.from_text("batch_1", cursor.to_text())
    for place in range(3):
        assert again.rows(place).ranges() == cursor.rows(place).ranges()
        assert len(again.rows(place)) == 100
    assert len(Cursor.from_text("batch_1", "").rows(0)) == 0


def test_a_cursor_is_small() -> None:
    """Half of 50,000 rows in the order of dispatch, 64 of them with holes: below 200 bytes."""
    cursor = Cursor("batch_1")
    for row in [*range(25_000), *range(25_000, 25_128, 2)]:
        cursor.rows(0).add(row)
    assert len(cursor.to_text()) < 200


@pytest.mark.parametrize("broken", ["x", "é", "AQAAAAAB", "A" * 100_000, "%%%"])
def test_other_texts_are_refused(broken: str) -> None:
    """InvalidRequest naming ``after``."""
    with pytest.raises(InvalidRequest) as refused:
        Cursor.from_text("batch_1", broken)
    assert refused.value.param == "after"


def test_a_cursor_of_another_batch_is_refused() -> None:
    """It would leave out rows nobody has."""
    cursor = Cursor("batch_1")
    cursor.rows(0).add(7)
    with pytest.raises(InvalidRequest):
        Cursor.from_text("batch_2", cursor.to_text())


def test_a_forged_cursor_costs_nothing() -> None:
    """A count of ranges that are not there, and a number without end, are refused."""
    for body in (b"\xff\xff\xff\xff\x0f", b"\xff" * 1000, b"\x02\x01\x01"):
        cursor = Cursor("b")
        head = b"\x01" + cursor._checksum(body)
        with pytest.raises((ValueError, IndexError, StopIteration)):
            cursor._read(head + body)
