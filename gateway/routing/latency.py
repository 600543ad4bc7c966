"""How long a target lets a call wait, as far as that is known."""

from math import exp

_MEMORY = 10.0  # seconds in which what was seen fades to a third


class PeakLatency:
    """A mean that follows a rise at once and a fall slowly. What is not renewed fades to nothing.

    So a target that was slow once is tried again after a while.
    """

    __slots__ = ("_at", "_value")

    def __init__(self) -> None:
        self._value = 0.0
        self._at = 0.0

    def seen(self, seconds: float, now: float) -> None:
        """A call waited so long."""
        old = self.value(now)
        if seconds >= old:
            self._value = seconds
        else:
            kept = exp((self._at - now) / _MEMORY)
            self._value = self._value * kept + seconds * (1 - kept)
        self._at = now

    def value(self, now: float) -> float:
        """Seconds that a call would wait; 0 when nothing is known."""
        return self._value * exp((self._at - now) / _MEMORY) if self._value else 0.0
