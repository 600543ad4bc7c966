"""What a dispatcher holds, and for how long."""

from gateway.batches.rows import BatchRow
from gateway.core.work import Extended, Lease, LeasedRow, LeasedRun
from gateway.dispatch.held import HeldLease, HeldRow, Holdings
from tests.support.clock import ManualClock


def _held() -> tuple[Holdings, ManualClock, HeldLease, HeldRow]:
    clock = ManualClock()
    holdings = Holdings(clock)
    run = LeasedRun("s", "j", "t", "m", "/v1/x", "in", "ix", 0, (LeasedRow(0),))
    lease = holdings.take(Lease("1", "m.0", 1000, (run,)))
    row = HeldRow(lease, run, run.rows[0], BatchRow(0, "c", "POST", "/v1/x", b"{}"))
    lease.rows["s", 0] = row
    return holdings, clock, lease, row


def test_a_row_may_start_until_its_lease_runs_out() -> None:
    """Without an extend nothing new starts after the ttl; an extend gives it another."""
    holdings, clock, _, row = _held()
    clock.advance(0.9)
    assert holdings.may_start(row)
    holdings.extended(Extended({"1": 1000}, (), ()))
    clock.advance(0.9)
    assert holdings.may_start(row)
    clock.advance(0.2)
    assert not holdings.may_start(row)


def test_rows_of_stopped_segments_and_gone_leases_must_not_go_on() -> None:
    """Both are named by the answer of an extend."""
    holdings, _, _, row = _held()
    assert holdings.extended(Extended({"1": 1000}, (), ("s",))) == [row]
    assert holdings.extended(Extended({}, ("1",), ())) == [row]
    assert holdings.extended(Extended({"1": 1000}, (), ("other",))) == []


def test_a_lease_without_rows_is_no_longer_held() -> None:
    """The last settled row ends it."""
    holdings, _, _, row = _held()
    assert len(holdings) == 1
    holdings.settled(row)
    assert len(holdings) == 0
    assert holdings.by_shard() == {}
