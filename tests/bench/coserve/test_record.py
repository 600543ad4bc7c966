"""What a call leaves."""

import math

import pytest

from gateway.bench.coserve.record import CallRecord, Record


def test_tokens_give_waits_and_gaps() -> None:
    """The first is waited for; the others have gaps."""
    record, call = Record(), CallRecord(1.0, 10, 3)
    assert call.ttft == math.inf
    for now in (1.5, 1.6, 1.9):
        record.token(call, now)
    assert call.ttft == 0.5
    assert call.itl == pytest.approx(0.2)
    assert list(record.gaps) == pytest.approx([0.1, 0.3])
    assert CallRecord(0, 1, 1, tokens=1).itl == 0
