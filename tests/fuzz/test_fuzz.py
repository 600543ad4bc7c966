"""A short fuzz run."""

from pathlib import Path

from tests.fuzz.run import fuzz


def test_a_few_seconds(tmp_path: Path) -> None:
    """No 500, no hang, no lost record, and both ends are met."""
    outcome = fuzz(6, 11, tmp_path)
    assert outcome.faults == []
    assert outcome.calls["200 complete"] > 20
    assert outcome.calls["400 error"] > 20
