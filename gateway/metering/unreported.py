"""Calls that a target may have worked on and that end without a word of what they used."""

from gateway.core.errors import (
    OutcomeUnknown,
    StreamInterrupted,
    UpstreamError,
    UpstreamTimeout,
)
from gateway.core.usage import Usage
from gateway.metering.counter import estimate_tokens
from gateway.providers.broken_answers import UNUSABLE

_NOT_CONNECTED = "connect_timeout"


def may_have_worked(error: BaseException) -> bool:
    """Whether a target that has the whole request may have worked on it, and nobody heard.

    So it is when its answer did not come or broke off, when we did not read it to its end, and when
    the caller left. What came whole is believed: a failure, or a page that is no answer, charges
    nothing.
    """
    if not isinstance(error, UpstreamError):
        return True
    if isinstance(error, UpstreamTimeout):
        return error.code != _NOT_CONNECTED
    if isinstance(error, StreamInterrupted):
        return error.cut
    return isinstance(error, OutcomeUnknown) or error.code in UNUSABLE


def unreported(prompt_bytes: int) -> Usage:
    """What such a call used, as an estimate: its prompt, and no completion that was seen."""
    return Usage(estimate_tokens(prompt_bytes), 0, estimated=True)
