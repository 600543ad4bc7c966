"""When a target is tried again, and how long after."""

from typing import Any

import pytest

from gateway.core.clock import SystemClock
from gateway.core.errors import (
    OutcomeUnknown,
    UpstreamError,
    UpstreamFailed,
    UpstreamRefused,
    UpstreamRejected,
    UpstreamThrottled,
    UpstreamTimeout,
)
from gateway.policy.target import RetryPolicy
from gateway.routing.retry import delay_before, may_try_again, with_retries
from tests.support.routes import a_route

QUICK = RetryPolicy(attempts=3, base=0.001, cap=0.002)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (UpstreamRefused("x", target="t"), True),
        (UpstreamThrottled("x", target="t", status=429), True),
        (UpstreamThrottled("x", target="t", status=429, code="insufficient_quota"), False),
        (UpstreamFailed("x", target="t", status=500), True),
        (UpstreamFailed("x", target="t"), False),
        (UpstreamTimeout("x", target="t", code="connect_timeout"), True),
        (UpstreamTimeout("x", target="t"), False),
        (OutcomeUnknown("x", target="t"), False),
        (UpstreamRejected("x", target="t", status=400), False),
        (ValueError("x"), False),
    ],
)
def test_what_may_be_tried_again(error: BaseException, *, expected: bool) -> None:
    """Refusals and told failures yes, unknown outcomes and the request's own faults no."""
    assert may_try_again(error, QUICK) is expected


def test_unknown_outcome_by_opt_in() -> None:
    """The policy may allow sending again what may have been done."""
    rule = RetryPolicy(resend_unknown=True)
    assert may_try_again(OutcomeUnknown("x", target="t"), rule)


def test_delay_is_drawn_below_a_growing_bound() -> None:
    """Full jitter: the bound doubles up to the cap."""
    rule = RetryPolicy(base=1, cap=4)
    error = UpstreamRefused("x", target="t")
    for tries, bound in ((1, 1), (2, 2), (3, 4), (6, 4)):
        drawn = [delay_before(tries, error, rule) for _ in range(200)]
        assert 0 <= min(drawn) <= max(drawn) <= bound
        assert max(drawn) > bound / 2


def test_told_delay_is_a_floor() -> None:
    """Retry-After is never undercut and hardly exceeded."""
    error = UpstreamThrottled("x", target="t", status=429, retry_after=3)
    assert all(3 <= delay_before(1, error, QUICK) <= 3.5 for _ in range(50))


async def _tries(errors: list[UpstreamError], deadline: float = 1e12, **how: Any) -> int:
    made = 0

    async def attempt() -> str:
        nonlocal made
        made += 1
        if errors:
            raise errors.pop(0)
        return "ok"

    try:
        await with_retries(attempt, QUICK, deadline, SystemClock(), **how)
    except UpstreamError:
        return -made
    return made


async def test_tries_until_it_works() -> None:
    """Two refusals and a success are three tries."""
    assert await _tries([UpstreamRefused("x", target="t")] * 2) == 3


async def test_gives_up_after_the_attempts() -> None:
    """The last error is raised after the last attempt."""
    assert await _tries([UpstreamRefused("x", target="t")] * 9) == -3


async def test_stops_at_what_may_not_be_tried_again() -> None:
    """A rejection after a refusal ends it."""
    assert await _tries([UpstreamRefused("x", target="t"), UpstreamRejected("x", target="t")]) == -2


async def test_never_waits_past_the_deadline() -> None:
    """A wait that would end too late is not begun."""
    assert await _tries([UpstreamRefused("x", target="t")], deadline=0.0) == -1


async def test_who_is_in_a_hurry_does_not_wait_as_told() -> None:
    """A told pause ends it when there is somewhere else to go; a pause of ours does not."""
    told = UpstreamThrottled("x", target="t", status=429, retry_after=0.01)
    assert await _tries([told], patient=False) == -1
    assert await _tries([UpstreamRefused("x", target="t")], patient=False) == 2


async def test_never_more_than_the_budget_allows() -> None:
    """An empty budget ends it."""
    state = a_route().state
    while state.budget.take():
        pass
    assert await _tries([UpstreamRefused("x", target="t")], state=state) == -1


async def test_a_target_that_is_left_out_is_not_tried_again() -> None:
    """Unless there is no other."""
    state, refused = a_route().state, UpstreamRefused("x", target="t")
    for _ in range(5):
        state.failed(refused, 0.0)
    assert await _tries([refused], state=state, patient=False) == -1
    assert await _tries([refused], state=state) == 2
