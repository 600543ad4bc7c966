"""Rows that crashed before, and the target that is kept free for them."""

import asyncio
from collections import deque
from collections.abc import Sequence

from gateway.dispatch.held import HeldRow
from gateway.dispatch.lane import TargetLane
from gateway.dispatch.verdict import open_to


class Isolation:
    """The suspects of one pool. They run at one target, chosen when the first of them comes.

    The queue leases them in shrinking groups; a crash was alone when the group was one row.
    """

    def __init__(self, lanes: Sequence[TargetLane]) -> None:
        self._lanes = lanes
        self._chosen: TargetLane | None = None
        self.rows: deque[HeldRow] = deque()

    def lane_for(self, row: HeldRow) -> TargetLane | None:
        """Where ``row`` runs; None while other pools have taken every target for theirs.

        While the chosen target does not work and another one does, they move.
        """
        chosen = self._chosen
        if chosen is not None and self._fits(chosen, row):
            return chosen
        free = [
            lane for lane in self._lanes if lane.isolating in {None, self} and open_to(row, lane)
        ]
        best = next((lane for lane in free if lane.gate.healthy), free[0] if free else chosen)
        if best is not chosen:
            self._leave()
            self._chosen = best
        if best is not None:
            best.isolating = self
        return best

    def beside(self, row: HeldRow, lane: TargetLane) -> bool:
        """Whether ``row`` may run beside those at ``lane``: only suspects of one lease may."""
        return all(other.lease is row.lease for other in lane.running)

    def over(self) -> None:
        """No suspect waits; when none runs either, the target is everyone's again."""
        if self._chosen is not None and not self._chosen.running:
            self._leave()

    def _fits(self, lane: TargetLane, row: HeldRow) -> bool:
        return bool(lane.running) or (lane.gate.healthy and open_to(row, lane))

    def _leave(self) -> None:
        lane, self._chosen = self._chosen, None
        if lane is not None:
            lane.isolating = None
            if len(lane.users) > 1:
                asyncio.get_running_loop().call_soon(lane.call)
