"""The gateway's word of interactive load, as late as it comes to a dispatcher."""

from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import fmean

from gateway.bench.coserve.record import CallRecord
from gateway.core.load import TargetLoad
from gateway.pacing.shared import Waiting

COALESCE_SECONDS = 0.05
HEARTBEAT_SECONDS = 0.25
_NOTHING = TargetLoad()


@dataclass(slots=True)
class EngineLoad:
    """Interactive calls at one engine now, and those that ended of late.

    ``listener`` gets what was ``said`` before and what is said now, as a dispatcher's lane does.
    """

    calls: int = 0
    prefilling: int = 0
    ended: list[CallRecord] = field(default_factory=list)
    said: TargetLoad = _NOTHING
    listener: Callable[[TargetLoad, TargetLoad], None] | None = None

    def say(self) -> None:
        """Tell the lane what is true now: it acts on nothing else."""
        waits = [call.ttft for call in self.ended if call.tokens]
        gaps = [call.itl for call in self.ended if call.tokens > 1]
        before, self.said = (
            self.said,
            TargetLoad(
                self.calls,
                self.prefilling,
                fmean(waits) if waits else None,
                fmean(gaps) if gaps else None,
            ),
        )
        self.ended.clear()
        if self.listener is not None:
            self.listener(before, self.said)

    @property
    def waiting(self) -> Waiting:
        """Who waits, as was said last."""
        return Waiting(self.said.calls, self.said.prefilling)


class Teller:
    """Says every change at once, two at least 50 ms apart, and the same again each 250 ms."""

    def __init__(self, loads: list[EngineLoad]) -> None:
        self._loads = loads
        self._last = -COALESCE_SECONDS
        self._changed = False

    def change(self) -> None:
        """Something is to be said."""
        self._changed = True

    def due(self) -> float:
        """When the next word is said."""
        return self._last + (COALESCE_SECONDS if self._changed else HEARTBEAT_SECONDS)

    def tell(self, now: float) -> None:
        """Say it."""
        self._last, self._changed = now, False
        for load in self._loads:
            load.say()
