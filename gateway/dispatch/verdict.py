"""What the end of an attempt means for its target, and what the row does next."""

from collections.abc import Sequence
from enum import Enum, auto

from gateway.core.work import TryKind
from gateway.dispatch.held import HeldRow
from gateway.dispatch.lane import TargetLane, Visit
from gateway.dispatch.run import Failed, Finished
from gateway.dispatch.witness import Sign

_MOST_THROTTLES = 3


class Next(Enum):
    """AGAIN: at once, where there is a place. LATER: after a pause. SETTLE: the queue decides.

    GIVE_UP: the result is the row's last word.
    """

    AGAIN = auto()
    LATER = auto()
    SETTLE = auto()
    GIVE_UP = auto()


def heard(
    row: HeldRow, visit: Visit, result: Finished | Failed, lanes: Sequence[TargetLane]
) -> Next:
    """Tell the lane what happened; what is the target's fault costs the row no try.

    A lost connection is not judged here: it takes time to tell a crash from it.
    """
    lane = visit.lane
    if isinstance(result, Finished):
        lane.gate.answered()
        if result.ok:
            lane.ended(visit, result.usage)
        return Next.SETTLE
    if result.sign is Sign.LOST:
        lane.gate.lost()
        return Next.SETTLE
    if result.sign is Sign.THROTTLED:
        return _throttled(row, visit, result)
    if result.sign is Sign.REJECTED:
        return _rejected(row, visit, result, lanes)
    return _failed(row, visit, result.sign, lanes)


def open_to(row: HeldRow, lane: TargetLane) -> bool:
    """Whether ``lane`` has not failed ``row`` yet, or had an outage since."""
    return row.barred is None or row.barred.get(lane.name) != lane.gate.outages


def moves_on(row: HeldRow, lane: TargetLane, lanes: Sequence[TargetLane]) -> bool:
    """Bar ``row`` from the lane that failed it; whether there is another one that may not."""
    if row.barred is None:
        row.barred = {}
    row.barred[lane.name] = lane.gate.outages
    return any(_usable(other) and open_to(row, other) for other in lanes)


def _usable(lane: TargetLane) -> bool:
    return lane.gate.healthy and not lane.rejected


def _failed(row: HeldRow, visit: Visit, sign: Sign, lanes: Sequence[TargetLane]) -> Next:
    lane = visit.lane
    if sign is Sign.REFUSED:
        lane.undone(visit)
        charged = lane.gate.refused()
    elif sign is Sign.FAILED:
        charged = lane.gate.failed(row.name)
    else:
        lane.gate.answered()
        return Next.SETTLE
    if not charged or moves_on(row, lane, lanes):
        return Next.AGAIN
    return Next.SETTLE


def _throttled(row: HeldRow, visit: Visit, result: Failed) -> Next:
    lane = visit.lane
    lane.gate.answered()
    for_all = lane.throttled(visit, result.told, result.rates)
    if row.heard != (now := (lane.name, lane.taken)):
        row.heard = now
        row.throttles += 1
    if lane.hopeless:
        return Next.SETTLE
    if for_all:
        return Next.AGAIN if row.throttles <= _MOST_THROTTLES else Next.SETTLE
    first = row.throttles == 1 and not row.row.error_tries
    return Next.LATER if first else Next.SETTLE


def _rejected(row: HeldRow, visit: Visit, result: Failed, lanes: Sequence[TargetLane]) -> Next:
    """Another credential or target, else the end; a used-up quota is waited for."""
    lane = visit.lane
    lane.gate.answered()
    if lane.reject(visit):
        return Next.AGAIN
    if moves_on(row, lane, lanes):
        lane.shut(visit)
        return Next.AGAIN
    used_up = result.failure.kind is TryKind.THROTTLE
    return _throttled(row, visit, result) if used_up else Next.GIVE_UP
