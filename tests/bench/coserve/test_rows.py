"""Rows in order."""

from gateway.bench.coserve.rows import Backlog, OfflineJob


def test_rows_that_were_taken_back_come_first() -> None:
    """They keep their place, and their number of tries is known."""
    backlog = Backlog([(1, 10), (2, 10), (3, 10)])
    first = backlog.take()
    assert first is not None
    backlog.give_back(first)
    assert backlog.take() is first
    assert first.taken_back == 1
    rest = [backlog.take(), backlog.take(), backlog.take()]
    assert [row.prompt if row else None for row in rest] == [2, 3, None]


def test_jobs_come_by_deadline() -> None:
    """Equal ones in their order; each row knows its job."""
    late, soon, also = (OfflineJob(((n, 1), (n, 2)), due) for n, due in ((1, 9), (2, 5), (3, 5)))
    backlog = Backlog.of_jobs([late, soon, also])
    rows = [backlog.take() for _ in range(6)]
    assert [row.job for row in rows if row] == [1, 1, 2, 2, 0, 0]
