"""What a dispatcher holds, and for how long."""

import math

from gateway.batches.rows import BatchRow
from gateway.core.work import Extended, Lease, LeasedRow, LeasedRun
from gateway.dispatch.held import HeldLease, HeldRow, Holdings, ends_at
from tests.support.clock import ManualClock


def _held() -> tuple[Holdings, ManualClock, HeldLease, HeldRow]:
    clock = ManualClock()
    holdings = Holdings(clock)
    run = LeasedRun("s", "j", "t", "m", "/v1/x", "in", "ix", 0, (LeasedRow(0),))
    lease = holdings.take(Lease("1", "m.0", 1000, (run,), 0), clock.monotonic())
    row = HeldRow(lease, run, run.rows[0], BatchRow(0, "c", "POST", "/v1/x", b"{}"))
    lease.rows["s", 0] = row
    return holdings, clock, lease, row


def test_a_row_may_start_until_its_lease_runs_out() -> None:
    """Without an extend nothing new starts after the ttl; an extend gives it another."""
    holdings, clock, _, row = _held()
    clock.advance(0.9)
    assert holdings.may_start(row)
    holdings.extended(Extended({"1": 1000}, (), ()), holdings.now())
    clock.advance(0.9)
    assert holdings.may_start(row)
    clock.advance(0.2)
    assert not holdings.may_start(row)
    holdings.not_started(row)
    assert len(holdings) == 0


def test_an_answer_that_came_late_keeps_a_lease_no_longer() -> None:
    """The ttl counts from when the queue was asked."""
    holdings, clock, _, row = _held()
    asked = holdings.now()
    clock.advance(0.9)
    holdings.extended(Extended({"1": 1000}, (), ()), asked)
    assert holdings.may_start(row)
    clock.advance(0.2)
    assert not holdings.may_start(row)


def test_a_row_does_not_start_past_its_deadline() -> None:
    """Though its lease lives. It is given back with the next beat, once."""
    holdings, clock, _, row = _held()
    row.ends = clock.monotonic() + 0.5
    assert holdings.may_start(row)
    clock.advance(0.5)
    assert not holdings.may_start(row)
    holdings.not_started(row)
    assert holdings.extended(Extended({"1": 1000}, (), ()), holdings.now()) == [row]
    assert holdings.extended(Extended({"1": 1000}, (), ()), holdings.now()) == []


def test_a_deadline_is_told_by_the_clock_of_the_queue() -> None:
    """It is so long after the lease was asked for; one that the queue ignores counts nowhere."""
    run = LeasedRun("s", "j", "t", "m", "/v1/x", "in", "ix", 5000, ())
    assert ends_at(run, 3500, 10.0) == 11.5
    assert ends_at(run, 5000, 10.0) == math.inf


def test_rows_of_stopped_segments_and_gone_leases_must_not_go_on() -> None:
    """Both are named by the answer of an extend."""
    holdings, _, _, row = _held()
    assert holdings.extended(Extended({"1": 1000}, (), ("s",)), 0.0) == [row]
    assert holdings.extended(Extended({}, ("1",), ()), 0.0) == [row]
    assert holdings.extended(Extended({"1": 1000}, (), ("other",)), 0.0) == []


def test_a_lease_without_rows_is_no_longer_held() -> None:
    """The last settled row ends it."""
    holdings, _, _, row = _held()
    assert len(holdings) == 1
    holdings.settled(row)
    assert len(holdings) == 0
    assert holdings.by_shard() == {}
