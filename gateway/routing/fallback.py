"""The targets of a call, one after the other, until one answers."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

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


async def attempt_all(plan: CallPlan, attempt: Attempt[T], clock: Clock) -> T:
    """The first success of ``attempt(route, last)`` over the plan; raises the last error.

    ``attempt`` must raise nothing once content was passed on, or everything would be sent twice.
    A full queue and every failure but the request's own fault lead to the next target; so does an
    unknown outcome only where the policy allows sending again, and a prompt that is too long only
    where a longer context is. Of targets that share the calls the next one is tried at once; each
    other, and the last of those, is tried again as its policy says.
    """
    groups, failed = plan.groups, None
    alone = plan.alone()
    if alone is not None:
        try:
            return await _one(plan, alone, attempt, clock, (False, False))
        except UpstreamError as error:
            _, groups = _onward(plan, alone, error, ([], ()))
            failed = error
    elif not plan.ready(groups[0], None):
        await plan.wait_until_available()
    return await _search(plan, attempt, clock, groups, failed)


async def _search(
    plan: CallPlan,
    attempt: Attempt[T],
    clock: Clock,
    groups: tuple[Group, ...],
    failed: HeadwayError | None,
) -> T:
    """The first success over ``groups``."""
    while groups:
        ready, groups = plan.ready(groups[0], failed), groups[1:]
        while ready:
            later = any(plan.ready(group, failed) for group in groups)
            try:
                route = await plan.next(ready, spill=later)
            except QueueFull as error:
                failed = error
                _or_raise(error, ready[0], later=later)
                break
            if route is None:
                break
            ready.remove(route)
            if not plan.ready((route,), failed):  # closed while the call waited for its place
                plan.give_up_place()
                continue
            try:
                return await _one(plan, route, attempt, clock, (bool(ready), later))
            except (UpstreamError, QueueFull) as error:
                failed = error
                ready, groups = _onward(plan, route, error, (ready, groups))
    raise failed or plan.unavailable()


async def _one(
    plan: CallPlan, route: Route, attempt: Attempt[T], clock: Clock, more: tuple[bool, bool]
) -> T:
    """An attempt; tried again unless another target of the group is there to be tried at once."""
    others, later = more
    last = not (others or later)
    once = partial(_with_keys, plan, route, attempt, clock, last)
    state = route.state
    state.budget.called()
    try:
        if others:
            return await once()
        deadline = plan.deadline(route)
        return await with_retries(once, route.retry, deadline, clock, state=state, patient=last)
    finally:
        plan.give_up_place()


async def _with_keys(
    plan: CallPlan, route: Route, attempt: Attempt[T], clock: Clock, last: bool
) -> T:
    """An attempt, at once again with the next of our keys there when it was the key's fault."""
    state = route.state
    if state.breaker.is_open:
        state.breaker.enter(clock.monotonic())
    keys = len(state.credentials)
    while True:
        keys -= 1
        try:
            got = await attempt(route, last)
        except UpstreamError as error:
            if plan.refused(route, error) and keys:
                continue
            state.failed(error, clock.monotonic())
            raise
        plan.began(route)
        return got


def _onward(
    plan: CallPlan,
    route: Route,
    error: UpstreamError | QueueFull,
    left: tuple[list[Route], tuple[Group, ...]],
) -> tuple[list[Route], tuple[Group, ...]]:
    """What is left to try after ``route`` failed so. Raises the error when that is the end."""
    if error.code == ContextLengthExceeded.code:
        return [], plan.longer(route)
    ready, groups = left
    _or_raise(error, route, later=bool(ready or groups))
    return plan.ready(ready, error), groups


def _or_raise(error: HeadwayError, route: Route, *, later: bool) -> None:
    """Go on to what comes later, if there is any and the failure allows it."""
    if isinstance(error, OutcomeUnknown):
        later = later and route.retry.resend_unknown
    elif isinstance(error, QueueFull):
        later = later and route.spill != "never"
    if not later or isinstance(error, UpstreamRejected):
        raise error
