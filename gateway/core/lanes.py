"""The three lanes of latency tolerance, fastest first."""

from enum import StrEnum


class Lane(StrEnum):
    """How long the caller is willing to wait.

    ``interactive`` goes out at once, ``elastic`` is a synchronous call that may wait up to a
    policy limit, ``batch`` is asynchronous. Elastic and batch together are *offline*.
    """

    INTERACTIVE = "interactive"
    ELASTIC = "elastic"
    BATCH = "batch"

    __hash__ = str.__hash__  # as quick as that of the text that it equals

    @property
    def offline(self) -> bool:
        """Whether the lane yields to interactive work."""
        return self is not Lane.INTERACTIVE

    def clamped(self, ceiling: "Lane") -> "Lane":
        """This lane, or ``ceiling`` when the caller may not go as fast as this."""
        return self if _RANK[self] >= _RANK[ceiling] else ceiling


_RANK = {lane: rank for rank, lane in enumerate(Lane)}
