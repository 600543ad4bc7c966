"""What repeats is said once a minute."""

import logging

from gateway.telemetry.duplicate_filter import DuplicateFilter


def _event(text: str, at: float, level: int = logging.WARNING) -> logging.LogRecord:
    record = logging.LogRecord("gateway", level, "", 1, "%s", (text,), None)
    record.created = at
    return record


def test_a_repeated_warning_is_counted() -> None:
    """Once at first, once a minute later with the number of those between; others pass."""
    duplicates = DuplicateFilter()
    assert duplicates.filter(_event("away", 0.0))
    assert not any(duplicates.filter(_event("away", at)) for at in (1.0, 2.0, 59.0))
    assert duplicates.filter(_event("other", 3.0))
    later = _event("away", 60.0)
    assert duplicates.filter(later)
    assert later.getMessage() == "away (and 3 times before)"
    assert not duplicates.filter(_event("away", 61.0))


def test_what_is_no_warning_always_passes() -> None:
    """An event of normal work may look like the one before."""
    duplicates = DuplicateFilter()
    assert all(duplicates.filter(_event("started", 0.0, logging.INFO)) for _ in range(3))


def test_many_different_texts_do_not_fill_the_memory() -> None:
    """What is too much to remember is written."""
    duplicates = DuplicateFilter()
    assert all(duplicates.filter(_event(f"{n}", 0.0)) for n in range(2000))
    assert len(duplicates._said) <= 512
    assert duplicates.filter(_event("1", 100.0))
    assert len(duplicates._said) == 1
