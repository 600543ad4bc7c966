"""How many calls of a lane run at a target at once, and who waits for how long."""

import asyncio
import math
from collections.abc import Iterator, Mapping, Sequence

from gateway.core.clock import Clock
from gateway.core.errors import QueueFull
from gateway.core.lanes import Lane
from gateway.policy.lanes import LaneLimits
from gateway.policy.model import Policy
from gateway.routing.state import TargetState

LONGEST_RETRY_AFTER = 60
_MEMORY = 0.2  # weight of the newest sample in a mean


class Slot:
    """A place at a target. Giving it back twice does nothing."""

    __slots__ = ("_gate", "_prefilling", "_since")

    def __init__(self, gate: "Gate", since: float) -> None:
        self._gate: Gate | None = gate
        self._since = since
        self._prefilling = False

    def prefill_begins(self) -> None:
        """The call goes out, and its first token will be seen."""
        if self._gate is not None:
            self._prefilling = True
            self._gate.prefilling += 1
            self._gate.state.prefilling += 1

    def first_token(self) -> None:
        """The first token was seen."""
        if self._gate is not None and self._prefilling:
            self._prefilling = False
            self._gate.prefilling -= 1
            self._gate.state.prefilling -= 1
            self._gate.changed.set()

    def release(self) -> None:
        """Give the place to the next in line. Never blocks."""
        self.first_token()
        gate, self._gate = self._gate, None
        if gate is not None:
            gate.leave(self._since)


class Gate:
    """The places of one target and lane."""

    def __init__(
        self, limits: LaneLimits, state: TargetState, clock: Clock, changed: asyncio.Event
    ) -> None:
        self.limits = limits
        self.changed = changed
        self.state = state
        self.running = 0
        self.prefilling = 0
        self.waiting: dict[asyncio.Future[Gate], None] = {}
        self._clock = clock
        self._held: float | None = None
        self._interval: float | None = None
        self._freed_at: float | None = None

    @property
    def free(self) -> bool:
        """Whether a call would get a place at once."""
        return self.running < self.limits.max_in_flight and not self.waiting

    def take(self) -> Slot:
        """A place that is free."""
        self.changed.set()
        self.running += 1
        self.state.running += 1
        return Slot(self, self._clock.monotonic())

    def leave(self, since: float) -> None:
        """A call that began then is over."""
        self.changed.set()
        now = self._clock.monotonic()
        self._held = _mean(self._held, now - since)
        if self.waiting:
            if self._freed_at is not None:
                self._interval = _mean(self._interval, now - self._freed_at)
            self._freed_at = now
        else:
            self._freed_at = None
        self.pass_on()

    def retry_after(self) -> int:
        """Whole seconds until a newcomer would get a place.

        From the intervals at which the queue really moved; before it did, from how long calls hold
        their places.
        """
        interval = self._interval
        if interval is None:
            held = self._held if self._held is not None else 1.0
            interval = held / max(self.limits.max_in_flight, 1)
        seconds = (len(self.waiting) + 1) * interval
        return min(max(math.ceil(seconds), 1), LONGEST_RETRY_AFTER)

    def pass_on(self) -> None:
        """Hand a place that was counted as running to the next in line, or free it."""
        while self.waiting:
            place = next(iter(self.waiting))
            del self.waiting[place]
            if not place.done():
                place.set_result(self)
                return
        self.running -= 1
        self.state.running -= 1


class Admission:
    """The gates of all targets and lanes of a policy.

    ``states`` hear how many calls run; ``changed`` is set when a call comes or goes.
    """

    def __init__(
        self, policy: Policy, clock: Clock, states: Mapping[str, TargetState] | None = None
    ) -> None:
        self._clock = clock
        self.changed = asyncio.Event()
        known = states or {n: TargetState(n, target) for n, target in policy.targets.items()}
        self._lanes = {
            lane: {
                name: Gate(target.lanes.of(lane), known[name], clock, self.changed)
                for name, target in policy.targets.items()
            }
            for lane in (Lane.INTERACTIVE, Lane.ELASTIC)
        }

    def gates(self, lane: Lane) -> Mapping[str, Gate]:
        """The gates of a lane by target."""
        return self._lanes[lane]

    async def enter(self, target: str, lane: Lane) -> Slot:
        """A place at ``target``, in order of arrival. As ``wait_for_place``, of one target."""
        gate = self._lanes[lane][target]
        return gate.take() if gate.free else (await self.wait_for_place([gate]))[1]

    async def wait_for_place(self, gates: Sequence[Gate]) -> tuple[Gate, Slot]:
        """The first place that comes free at one of ``gates``; each keeps the order of arrival.

        Raises QueueFull when all queues are full, or no place came within ``max_wait``. Whoever
        gets a slot must release it; one who is cancelled while waiting has none.
        """
        lines = [gate for gate in gates if len(gate.waiting) < gate.limits.max_queue]
        if not lines:
            raise _full(gates, "is full")
        place: asyncio.Future[Gate] = asyncio.get_running_loop().create_future()
        for gate in lines:
            gate.waiting[place] = None
        self.changed.set()
        try:
            async with asyncio.timeout(max(gate.limits.max_wait for gate in lines)):
                got = await place
        except BaseException as error:
            if place.done() and not place.cancelled():
                place.result().pass_on()  # it came at the same moment: it is not ours to keep
            if isinstance(error, TimeoutError):
                raise _full(gates, "did not move in time") from None
            raise
        finally:
            for gate in lines:
                gate.waiting.pop(place, None)
        return got, Slot(got, self._clock.monotonic())

    def places(self) -> Iterator[tuple[str, Lane]]:
        """Every target and lane."""
        for lane, gates in self._lanes.items():
            for name in gates:
                yield name, lane

    def running(self, target: str, lane: Lane) -> int:
        """Places taken now."""
        return self._lanes[lane][target].running

    def prefilling(self, target: str, lane: Lane) -> int:
        """Streams that have a place and no token yet."""
        return self._lanes[lane][target].prefilling

    def waiting(self, target: str, lane: Lane) -> int:
        """Calls in line now."""
        return len(self._lanes[lane][target].waiting)


def _full(gates: Sequence[Gate], what: str) -> QueueFull:
    return QueueFull(
        f"Too many calls at once: the queue of this model and class {what}.",
        retry_after=min(gate.retry_after() for gate in gates),
    )


def _mean(mean: float | None, newest: float) -> float:
    return newest if mean is None else mean + _MEMORY * (newest - mean)
