"""How many calls of a lane run at a target at once, and who waits for how long."""

import asyncio
import math
from collections import deque
from collections.abc import Iterator

from gateway.core.clock import Clock
from gateway.core.errors import QueueFull
from gateway.core.lanes import Lane
from gateway.policy.lanes import LaneLimits
from gateway.policy.model import Policy

LONGEST_RETRY_AFTER = 60
_MEMORY = 0.2  # weight of the newest sample in the mean time that a place is held


class Slot:
    """A place at a target. Giving it back twice does nothing."""

    __slots__ = ("_gate", "_since")

    def __init__(self, gate: "_Gate", since: float) -> None:
        self._gate: _Gate | None = gate
        self._since = since

    def release(self) -> None:
        """Give the place to the next in line. Never blocks."""
        gate, self._gate = self._gate, None
        if gate is not None:
            gate.leave(self._since)


class _Gate:
    """The places of one target and lane."""

    def __init__(self, limits: LaneLimits, clock: Clock, changed: asyncio.Event) -> None:
        self.limits = limits
        self._changed = changed
        self.running = 0
        self.waiting: deque[asyncio.Future[None]] = deque()
        self._clock = clock
        self._held: float | None = None

    async def enter(self) -> Slot:
        self._changed.set()
        if self.running >= self.limits.max_in_flight or self.waiting:
            await self._wait()
        else:
            self.running += 1
        return Slot(self, self._clock.monotonic())

    def leave(self, since: float) -> None:
        self._changed.set()
        held = self._clock.monotonic() - since
        self._held = held if self._held is None else self._held + _MEMORY * (held - self._held)
        self._pass_on()

    def retry_after(self) -> int:
        """Whole seconds until a newcomer would get a place, from the rate at which places free."""
        each = self._held if self._held is not None else 1.0
        seconds = (len(self.waiting) + 1) * each / max(self.limits.max_in_flight, 1)
        return min(max(math.ceil(seconds), 1), LONGEST_RETRY_AFTER)

    async def _wait(self) -> None:
        if len(self.waiting) >= self.limits.max_queue:
            raise self._full("is full")
        place = asyncio.get_running_loop().create_future()
        self.waiting.append(place)
        try:
            async with asyncio.timeout(self.limits.max_wait):
                await place
        except BaseException as error:
            if place.done() and not place.cancelled():
                self._pass_on()  # the place came at the same moment: it is not ours to keep
            elif place in self.waiting:
                self.waiting.remove(place)
            if isinstance(error, TimeoutError):
                raise self._full("did not move in time") from None
            raise

    def _pass_on(self) -> None:
        """Hand a place that was counted as running to the next in line, or free it."""
        while self.waiting:
            place = self.waiting.popleft()
            if not place.done():
                place.set_result(None)
                return
        self.running -= 1

    def _full(self, what: str) -> QueueFull:
        return QueueFull(
            f"Too many calls at once: the queue of this model and class {what}.",
            retry_after=self.retry_after(),
        )


class Admission:
    """The gates of all targets and lanes of a policy.

    ``changed`` is set when a call comes or goes.
    """

    def __init__(self, policy: Policy, clock: Clock) -> None:
        self.changed = asyncio.Event()
        self._gates = {
            (name, lane): _Gate(target.lanes.of(lane), clock, self.changed)
            for name, target in policy.targets.items()
            for lane in (Lane.INTERACTIVE, Lane.ELASTIC)
        }

    async def enter(self, target: str, lane: Lane) -> Slot:
        """A place at ``target``, in order of arrival.

        Raises QueueFull when the queue is full, or the place did not come within ``max_wait``.
        Whoever gets a slot must release it; one who is cancelled while waiting has none.
        """
        return await self._gates[target, lane].enter()

    def places(self) -> Iterator[tuple[str, Lane]]:
        """Every target and lane."""
        yield from self._gates

    def running(self, target: str, lane: Lane) -> int:
        """Places taken now."""
        return self._gates[target, lane].running

    def waiting(self, target: str, lane: Lane) -> int:
        """Calls in line now."""
        return len(self._gates[target, lane].waiting)
