"""The targets of a call, one after the other, until one answers."""

from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, Generic, TypeVar

from gateway.core.clock import Clock
from gateway.core.errors import (
    ContextLengthExceeded,
    HeadwayError,
    OutcomeUnknown,
    QueueFull,
    UpstreamError,
    UpstreamRejected,
)
from gateway.routing.call_plan import CallPlan
from gateway.routing.retry import with_retries
from gateway.routing.route import Group, Route

T = TypeVar("T")
Attempt = Callable[[Route, bool], Awaitable[T]]


def attempt_all(plan: CallPlan, attempt: Attempt[T], clock: Clock) -> Coroutine[Any, Any, T]:
    """The first success of ``attempt(route, last)`` over the plan; raises the last error.

    ``attempt`` must raise nothing once content was passed on, or everything would be sent twice.
    A full queue and every failure but the request's own fault lead to the next target; so does an
    unknown outcome only where the policy allows sending again, and a prompt that is too long only
    where a longer context is. Of targets that share the calls the next one is tried at once; each
    other, and the last of those, is tried again as its policy says.
    """
    return _Search(plan, attempt, clock).first_success()


class _Search(Generic[T]):
    """What is left to try of a plan, and the failure so far.

    ``_ready`` are the other routes of the group whose turn it is, ``_groups`` those after it;
    ``_later`` says that one of these could be tried now.
    """

    _later = False
    _failed: HeadwayError | None = None

    def __init__(self, plan: CallPlan, attempt: Attempt[T], clock: Clock) -> None:
        self._plan = plan
        self._attempt = attempt
        self._clock = clock
        self._groups: tuple[Group, ...] = plan.groups
        self._ready: list[Route] = []

    async def first_success(self) -> T:
        """Try the routes in turn until one answers."""
        plan = self._plan
        route = plan.alone()
        if route is not None:
            self._groups = ()
        else:
            if not plan.ready(self._groups[0], None):
                await plan.wait_until_available()
            route = await self._next()
        try:
            while route is not None:
                try:
                    return await self._with_retries(route)
                except (UpstreamError, QueueFull) as error:
                    if not self._goes_on(route, error):
                        raise
                route = await self._next()
            raise self._failed or plan.unavailable()
        finally:
            self._failed = None  # it leads back to here: both would stay for a while

    async def _next(self) -> Route | None:
        """The next route, with its place held; None when there is none."""
        while (route := await self._next_of_those_left()) is None:
            if self._failed is not None or not await self._plan.wait_for_return():
                return None
            self._groups = self._plan.groups
        return route

    async def _next_of_those_left(self) -> Route | None:
        plan = self._plan
        while self._ready or self._groups:
            if not self._ready:
                self._ready = plan.ready(self._groups[0], self._failed)
                self._groups = self._groups[1:]
                continue
            self._later = any(plan.ready(group, self._failed) for group in self._groups)
            try:
                route = await plan.next(self._ready, spill=self._later)
            except QueueFull as error:
                self._failed = error
                if not _goes_on(self._later, error, self._ready[0]):
                    raise
                route = None
            if route is None:
                self._ready = []
                continue
            self._ready.remove(route)
            if plan.ready((route,), self._failed):
                return route
            plan.give_up_place()  # the target was left out while the call waited for its place
        return None

    async def _with_retries(self, route: Route) -> T:
        """An attempt; tried again unless another target of the group can be tried at once."""
        state = route.state
        state.budget.called()
        last = not (self._ready or self._later)
        once = partial(self._with_keys, route, last)
        try:
            if self._ready:
                return await once()
            deadline = self._plan.deadline(route)
            return await with_retries(
                once, route.retry, deadline, self._clock, state=state, patient=last
            )
        finally:
            self._plan.give_up_place()

    async def _with_keys(self, route: Route, last: bool) -> T:
        """An attempt, at once again with the next of our keys there when it was the key's fault."""
        state = route.state
        if state.breaker.is_open:
            state.breaker.enter(self._clock.monotonic())
        keys = len(state.credentials)
        while True:
            keys -= 1
            try:
                got = await self._attempt(route, last)
            except UpstreamError as error:
                if self._plan.refused(route, error) and keys:
                    continue
                state.failed(error, self._clock.monotonic())
                raise
            self._plan.answered(route)
            return got

    def _goes_on(self, route: Route, error: UpstreamError | QueueFull) -> bool:
        """Leave what may still be tried after ``route`` failed so; False when that is nothing."""
        self._failed = error
        if error.code == ContextLengthExceeded.code:
            self._ready, self._groups = [], self._plan.longer(route)
            return True
        if not _goes_on(bool(self._ready or self._groups), error, route):
            return False
        self._ready = self._plan.ready(self._ready, error)
        return True


def _goes_on(more: bool, error: HeadwayError, route: Route) -> bool:
    """Whether there is more to try and the failure allows it."""
    if isinstance(error, OutcomeUnknown):
        more = more and route.retry.resend_unknown
    elif isinstance(error, QueueFull):
        more = more and route.spill != "never"
    return more and not isinstance(error, UpstreamRejected)
