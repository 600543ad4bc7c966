"""What late work costs at each target, in each window of the policy's cost cap.

Every dispatcher sets the sum that it holds, so telling it twice changes nothing, and what a dead
one held stays counted.
"""

from dataclasses import dataclass

from gateway.store.client import StoreClient
from gateway.store.scripts import whole_script


@dataclass(frozen=True, slots=True)
class Held:
    """In millionths: what one dispatcher may spend, and what all of them hold."""

    mine: int
    total: int


class LateCost:
    """Methods raise StoreUnavailable when Redis is away."""

    def __init__(self, redis: StoreClient, dispatcher: str) -> None:
        self._redis = redis
        self._dispatcher = dispatcher
        self._script = whole_script("late_cost")

    async def hold(self, target: str, window: str, want: int, *, used: int, cap: int) -> Held:
        """Hold ``want`` millionths, less when the cap says so, but never less than ``used``.

        ``window`` is seconds and number of the window. It is forgotten after the next one.
        """
        key = f"gw:{{sys}}:late:{window}:{target}"
        keep = 2 * int(window.partition("-")[0]) + 60
        mine, total = await self._script.run(
            self._redis, [key], self._dispatcher, used, want, cap, keep
        )
        return Held(int(mine), int(total))
