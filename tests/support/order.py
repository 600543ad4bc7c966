"""The order of the tests where several processes share them: the longest begin first."""

from collections.abc import Sequence

import pytest

#: Files and folders whose tests take ten seconds and more, the longest first.
LONG = (
    "tests/store/test_queue_properties.py",
    "tests/worker/models/test_loading.py",
    "tests/bench/test_demo.py",
    "tests/soak/",
    "tests/faults/",
    "tests/conformance/test_batch_clients.py",
    "tests/bench/coserve/test_live.py",
    "tests/bench/coserve/test_batch_arm.py",
)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """After what is left out was left out; one process alone keeps the order of the files."""
    workers = getattr(config, "workerinput", {}).get("workercount", 1)
    if workers > 1:
        found = [longness(item.nodeid) for item in items]
        items[:] = [items[place] for place in long_first(found, workers)]


def longness(test: str) -> int:
    """The place of a test among the long ones; behind all of them for any other."""
    return next((at for at, start in enumerate(LONG) if test.startswith(start)), len(LONG))


def long_first(found: Sequence[int], workers: int) -> list[int]:
    """An order of tests with such a ``longness``: each worker begins with its share of long ones.

    Workers get as many tests in a row each, as ``--dist worksteal`` hands them out.
    """
    ranked = sorted(range(len(found)), key=found.__getitem__)
    count = sum(value < len(LONG) for value in found)
    long, rest = ranked[:count], ranked[count:]
    order: list[int] = []
    for place in range(workers):
        size = (len(found) - len(order)) // (workers - place)
        share = long[place::workers]
        others = max(0, size - len(share))
        order += share + rest[:others]
        rest = rest[others:]
    return order
