"""Values of the queue."""

import struct

from gateway.core.work import Lease, LeasedRow, LeasedRun, SegmentSpec


def test_rows_of_a_segment_come_from_its_tokens() -> None:
    """Four bytes are one row."""
    tokens = struct.pack("<3I", 5, 6, 7)
    spec = SegmentSpec("s", "j", "t", "m", tokens, 1000, "in", "ix", "/v1/chat/completions")
    assert spec.rows == 3


def test_rows_of_a_lease_are_summed_over_its_runs() -> None:
    """A lease may hold parts of several segments."""
    run = LeasedRun("s", "j", "t", "m", "/v1/x", "in", "ix", 0, (LeasedRow(0), LeasedRow(1)))
    assert Lease("1", "m.0", 1000, (run, run), 0).rows == 4
