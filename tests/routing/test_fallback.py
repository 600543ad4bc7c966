"""From one target to the next."""

import contextlib

import pytest

from gateway.core.clock import SystemClock
from gateway.core.errors import (
    HeadwayError,
    OutcomeUnknown,
    QueueFull,
    StreamInterrupted,
    UpstreamCredential,
    UpstreamRejected,
)
from gateway.core.lanes import Lane
from gateway.policy.model import Policy
from gateway.routing.fallback import attempt_all
from gateway.routing.plan import Route
from gateway.routing.router import Router


def plan(*, resend: bool = False) -> tuple[Route, ...]:
    """Two targets for one model."""
    retry = {"attempts": 1, "resend_unknown": resend}
    target = {"base_url": "http://x/v1", "models": ["m"], "retry": retry}
    return Router(Policy.model_validate({"targets": {"a": target, "b": target}})).plan(
        "m", Lane.INTERACTIVE
    )


async def _asked(error: HeadwayError, *, resend: bool = False) -> list[tuple[str, bool]]:
    asked: list[tuple[str, bool]] = []

    async def attempt(route: Route, last: bool) -> None:
        asked.append((route.target, last))
        if route.target == "a":
            raise error

    with contextlib.suppress(type(error)):
        await attempt_all(plan(resend=resend), attempt, SystemClock())
    return asked


@pytest.mark.parametrize(
    "error",
    [
        QueueFull("x", retry_after=1),
        UpstreamCredential("x", target="a", status=401),
        StreamInterrupted("x", target="a"),
    ],
)
async def test_goes_on_to_the_next(error: HeadwayError) -> None:
    """A target's own trouble leads to the next one, which is told to be the last."""
    assert await _asked(error) == [("a", False), ("b", True)]


async def test_request_faults_end_the_chain() -> None:
    """What the request got wrong is the same everywhere."""
    assert await _asked(UpstreamRejected("x", target="a", status=400)) == [("a", False)]


async def test_unknown_outcome_only_where_allowed() -> None:
    """Sending again what may have been done is the policy's decision."""
    error = OutcomeUnknown("x", target="a")
    assert len(await _asked(error)) == 1
    assert len(await _asked(error, resend=True)) == 2
