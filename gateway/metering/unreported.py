"""Calls that a target may have worked on and that end without a word of what they used."""

from gateway.core.errors import (
    OutcomeUnknown,
    StreamInterrupted,
    UpstreamError,
    UpstreamFailed,
    UpstreamTimeout,
)
from gateway.core.usage import Usage
from gateway.metering.counter import estimate_tokens

_NOT_CONNECTED = "connect_timeout"


def may_have_worked(error: BaseException) -> bool:
    """Whether a target that has the whole request may have worked on it, and nobody heard.

    So it is when its answer did not come, broke off or made no sense, and when we broke off.
    What told its failure, by status or by an event, is believed: it charges nothing.
    """
    if isinstance(error, UpstreamTimeout):
        return error.code != _NOT_CONNECTED
    if isinstance(error, UpstreamFailed):
        return error.status is None
    return isinstance(error, OutcomeUnknown | StreamInterrupted) or not isinstance(
        error, UpstreamError
    )


def unreported(prompt_bytes: int) -> Usage:
    """What such a call used, as an estimate: its prompt, and no completion that was seen."""
    return Usage(estimate_tokens(prompt_bytes), 0, estimated=True)
