"""The targets of a plan, one after the other, until one answers."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from gateway.core.clock import Clock
from gateway.core.errors import (
    HeadwayError,
    OutcomeUnknown,
    QueueFull,
    UpstreamError,
    UpstreamRejected,
)
from gateway.routing.plan import Route
from gateway.routing.retry import with_retries

T = TypeVar("T")
Attempt = Callable[[Route, bool], Awaitable[T]]


async def attempt_all(
    plan: tuple[Route, ...],
    attempt: Attempt[T],
    clock: Clock,
) -> T:
    """The first success of ``attempt(route, last)`` over the plan; raises the last error.

    ``attempt`` must raise nothing once content was passed on, or everything would be sent twice.
    A full queue and every failure but the request's own fault lead to the next target; so does an
    unknown outcome only where the policy allows sending again.
    """
    started = clock.monotonic()
    final = len(plan) - 1
    for position, route in enumerate(plan):
        last = position == final

        async def once(route: Route = route, last: bool = last) -> T:
            return await attempt(route, last)

        try:
            deadline = started + route.timeouts.total
            return await with_retries(once, route.retry, deadline, clock)
        except (UpstreamError, QueueFull) as error:
            if last or not _may_move_on(error, route):
                raise
    raise AssertionError("a plan has at least one route")


def _may_move_on(error: HeadwayError, route: Route) -> bool:
    if isinstance(error, OutcomeUnknown):
        return route.retry.resend_unknown
    return not isinstance(error, UpstreamRejected)
