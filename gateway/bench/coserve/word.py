"""The gateway's word of interactive load, as late as it comes to a dispatcher."""

from collections.abc import Callable
from dataclasses import dataclass, field

from gateway.pacing.shared import Waiting

COALESCE_SECONDS = 0.05
HEARTBEAT_SECONDS = 0.25
_NOBODY = Waiting(0, 0)


@dataclass(slots=True)
class EngineLoad:
    """Interactive calls at one engine now, and the mean gaps of those that ended of late."""

    calls: int = 0
    prefilling: int = 0
    gaps: list[float] = field(default_factory=list)
    said: Waiting = _NOBODY
    on_arrival: Callable[[], None] | None = None
    on_gap: Callable[[float], None] | None = None

    def say(self) -> None:
        """Tell the lane what is true now: it acts on nothing else."""
        before, self.said = self.said, Waiting(self.calls, self.prefilling)
        more = self.calls > before.calls or self.prefilling > before.prefilling
        if more and self.on_arrival is not None:
            self.on_arrival()
        if self.gaps and self.on_gap is not None:
            self.on_gap(sum(self.gaps) / len(self.gaps))
        self.gaps.clear()


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
