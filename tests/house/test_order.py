"""The order in which several processes run the tests."""

from pathlib import Path

import pytest

from tests.support.order import LONG, long_first, longness

ROOT = Path(__file__).parents[2]
_SHORT = len(LONG)


def test_what_is_listed_is_there() -> None:
    """A file that was renamed would lose its place."""
    assert [place for place in LONG if not (ROOT / place).exists()] == []


def test_how_long_a_test_is() -> None:
    """By its file, or the folder it is in."""
    assert longness("tests/store/test_queue_properties.py::test_x[40]") == 0
    assert longness("tests/faults/test_kill.py::test_x") == LONG.index("tests/faults/")
    assert longness("tests/core/test_ids.py::test_x") == _SHORT


@pytest.mark.parametrize("workers", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("count", [5, 41, 200])
def test_each_worker_begins_with_long_ones(workers: int, count: int) -> None:
    """Of the tests in a row that it is handed, and the longest of all comes first."""
    found = [3 if at % 9 == 5 else _SHORT for at in range(count)]
    found[-1] = 0
    order = long_first(found, workers)
    assert sorted(order) == list(range(count))
    assert order[0] == count - 1
    handed = 0
    for place in range(workers):
        size = (count - handed) // (workers - place)
        part = [found[at] for at in order[handed : handed + size]]
        assert part == sorted(part)
        handed += size
