"""What a call used that ended without a report."""

import asyncio

import pytest

from gateway.core.errors import (
    OutcomeUnknown,
    StreamInterrupted,
    UpstreamCredential,
    UpstreamFailed,
    UpstreamRefused,
    UpstreamRejected,
    UpstreamThrottled,
    UpstreamTimeout,
)
from gateway.core.usage import Usage
from gateway.metering.unreported import may_have_worked, unreported
from gateway.providers.broken_answers import ended_early, malformed_answer, too_long


def cut() -> StreamInterrupted:
    """A connection that broke off."""
    error = ended_early("t")
    error.cut = True
    return error


@pytest.mark.parametrize(
    "error",
    [
        OutcomeUnknown("cut", target="t"),
        cut(),
        UpstreamTimeout("first byte", target="t"),
        too_long(5, "t"),
        asyncio.CancelledError(),
        RuntimeError("a fault of ours"),
    ],
)
def test_nobody_heard_what_the_target_did(error: BaseException) -> None:
    """It may have worked whenever its answer did not come whole."""
    assert may_have_worked(error)


@pytest.mark.parametrize(
    "error",
    [
        UpstreamRefused("no connection", target="t"),
        UpstreamTimeout("no connection", target="t", code="connect_timeout"),
        UpstreamThrottled("later", target="t", status=429),
        UpstreamRejected("no", target="t", status=400),
        UpstreamCredential("no", target="t", status=401),
        UpstreamFailed("it failed", target="t", status=500),
        malformed_answer("t"),
        ended_early("t"),
    ],
)
def test_what_was_told_or_never_arrived_is_no_work(error: BaseException) -> None:
    """An answer that came whole is believed, whatever it is, as a target that was never reached."""
    assert not may_have_worked(error)


def test_the_prompt_is_estimated_and_no_completion() -> None:
    """Marked as an estimate, also when it comes to nothing."""
    assert unreported(41) == Usage(11, 0, estimated=True)
    assert unreported(0) == Usage(0, 0, estimated=True)
