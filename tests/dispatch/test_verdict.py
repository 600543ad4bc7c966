"""What a row does next."""

from gateway.core.usage import Usage
from gateway.core.work import TryKind
from gateway.dispatch.run import Failed, Finished
from gateway.dispatch.verdict import Next, heard, moves_on, open_to
from gateway.dispatch.witness import Sign
from tests.support.clock import ManualClock
from tests.support.rows import failed_row, held_row, lane_of


def _after(result: Finished | Failed, *, targets: int = 1, errors: int = 0) -> Next:
    clock = ManualClock()
    lanes = [lane_of(clock, f"t{number}") for number in range(targets)]
    row = held_row(errors=errors)
    return heard(row, lanes[0].enter(row, suspect=False), result, lanes)


def test_answers_are_settled() -> None:
    """So are faults of our own."""
    assert _after(Finished(b"", Usage(1, 1), ok=True)) is Next.SETTLE
    assert _after(Finished(b"", Usage(), ok=False)) is Next.SETTLE
    assert _after(failed_row(Sign.ANSWERED), targets=2) is Next.SETTLE


def test_a_failure_leads_to_another_target() -> None:
    """Only when there is none is it the queue's."""
    for sign in (Sign.FAILED,):
        assert _after(failed_row(sign)) is Next.SETTLE
        assert _after(failed_row(sign), targets=2) is Next.AGAIN
    assert _after(failed_row(Sign.REFUSED)) is Next.AGAIN


def test_no_target_gets_a_row_twice() -> None:
    """Unless it had an outage meanwhile, which explains the failure."""
    clock = ManualClock()
    one, two = lane_of(clock, "one"), lane_of(clock, "two")
    row = held_row()
    assert moves_on(row, one, [one, two])
    assert not open_to(row, one)
    assert not moves_on(row, two, [one, two])
    one.gate.refused()
    assert open_to(row, one)


def test_throttles_are_free_for_a_while() -> None:
    """With a time for the target, without one for the row: once later, then it is charged."""
    assert _after(failed_row(Sign.THROTTLED, told=1.0)) is Next.AGAIN
    assert _after(failed_row(Sign.THROTTLED)) is Next.LATER
    assert _after(failed_row(Sign.THROTTLED), errors=1) is Next.SETTLE


def test_a_row_throttled_while_others_are_not() -> None:
    """It is the row's own fault in the end."""
    clock = ManualClock()
    lane, row, fates = lane_of(clock), held_row(), []
    for _ in range(4):
        lane.enter(other := held_row(9), suspect=False).head(None)
        lane.leave(other)
        visit = lane.enter(row, suspect=False)
        fates.append(heard(row, visit, failed_row(Sign.THROTTLED, told=0.1), [lane]))
        lane.leave(row)
        clock.advance(1.0)
    assert fates == [Next.AGAIN] * 3 + [Next.SETTLE]


def test_a_refused_credential() -> None:
    """The next target, or the end; a used-up quota is waited for."""
    assert _after(failed_row(Sign.REJECTED)) is Next.GIVE_UP
    assert _after(failed_row(Sign.REJECTED), targets=2) is Next.AGAIN
    assert _after(failed_row(Sign.REJECTED, kind=TryKind.THROTTLE)) is Next.LATER
