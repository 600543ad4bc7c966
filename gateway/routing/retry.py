"""Trying one target again. The retry library is known to this file alone."""

import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

import tenacity

from gateway.core.clock import Clock
from gateway.core.errors import (
    INSUFFICIENT_QUOTA,
    OutcomeUnknown,
    UpstreamError,
    UpstreamFailed,
    UpstreamRefused,
    UpstreamThrottled,
    UpstreamTimeout,
)
from gateway.policy.target import RetryPolicy
from gateway.routing.state import TargetState

T = TypeVar("T")

_LONGEST_EXTRA = 0.5  # seconds of jitter on top of a told Retry-After
_SERVER_ERROR = 500


def may_try_again(error: BaseException, rule: RetryPolicy) -> bool:
    """Whether the same target may get the same call again.

    Yes when it refused without doing anything, or said that it failed. Never when the outcome is
    unknown, unless the policy asks for it; never for a used-up quota.
    """
    if isinstance(error, UpstreamThrottled):
        return error.code != INSUFFICIENT_QUOTA
    if isinstance(error, UpstreamFailed):
        return (error.status or 0) >= _SERVER_ERROR and error.code == UpstreamFailed.code
    if isinstance(error, UpstreamTimeout):
        return error.code == "connect_timeout"
    if isinstance(error, OutcomeUnknown):
        return rule.resend_unknown
    return isinstance(error, UpstreamRefused)


def delay_before(tries: int, error: BaseException, rule: RetryPolicy) -> float:
    """Seconds to wait after ``tries`` tries: drawn below a bound that doubles, or as told."""
    bound = min(rule.cap, rule.base * 2.0 ** (tries - 1))
    told = error.retry_after if isinstance(error, UpstreamError) else None
    if told is not None:
        return told + random.uniform(0, min(bound, _LONGEST_EXTRA))  # noqa: S311 - jitter
    return random.uniform(0, bound)  # noqa: S311 - jitter, not a secret


async def with_retries(
    attempt: Callable[[], Awaitable[T]],
    rule: RetryPolicy,
    deadline: float,
    clock: Clock,
    *,
    state: TargetState | None = None,
    patient: bool = True,
) -> T:
    """``attempt()``, again while the rule allows it and the wait ends before ``deadline``.

    ``deadline`` is in the clock's monotonic seconds. ``state`` is the target's: its budget must
    allow a retry, too. Who is not ``patient`` does not wait for a time that the target tells, nor
    tries one that is left out by now. Raises the last error as it is.
    """
    try:
        return await attempt()
    except UpstreamError as error:
        if rule.attempts == 1 or not may_try_again(error, rule):
            raise
        failed = [error]
    return await _again(attempt, failed, rule, clock, _Stop(rule, deadline, clock, state, patient))


class _Stop:
    """Says when it is enough."""

    def __init__(
        self,
        rule: RetryPolicy,
        deadline: float,
        clock: Clock,
        state: TargetState | None,
        patient: bool,
    ) -> None:
        self._rule = rule
        self._deadline = deadline
        self._clock = clock
        self._state = state
        self._patient = patient

    def __call__(self, tried: tenacity.RetryCallState) -> bool:
        """Whether the failure that ``tried`` tells of is the last. A retry is counted."""
        return (
            tried.attempt_number >= self._rule.attempts
            or self._clock.monotonic() + tried.upcoming_sleep > self._deadline
            or not (self._patient or self._soon(_error_of(tried)))
            or not (self._state is None or self._state.budget.take())
        )

    def _soon(self, error: BaseException) -> bool:
        """Whether the target may be tried after a pause of ours."""
        told = isinstance(error, UpstreamError) and error.retry_after
        return not told and not (self._state is not None and self._state.breaker.is_open)


async def _again(
    attempt: Callable[[], Awaitable[T]],
    failed: list[UpstreamError],
    rule: RetryPolicy,
    clock: Clock,
    stop: _Stop,
) -> T:
    """Go on after the first failure, which the library is shown as its first attempt.

    Nearly every call works at once: only those that do not pay for the library. ``failed`` is left
    empty: an error that is kept where it was raised stays until the garbage collector comes by.
    """

    async def once() -> T:
        if failed:
            raise failed.pop()
        return await attempt()

    def wait(tried: tenacity.RetryCallState) -> float:
        return delay_before(tried.attempt_number, _error_of(tried), rule)

    retrying = tenacity.AsyncRetrying(
        retry=tenacity.retry_if_exception(lambda error: may_try_again(error, rule)),
        wait=wait,
        stop=stop,
        sleep=clock.sleep,
        reraise=True,
    )
    try:
        return await retrying(once)
    except UpstreamError as error:
        raise error.with_traceback(None)  # noqa: B904 - of the library's frames, which hold it
    finally:
        retrying.iter_state.reset()


def _error_of(tried: tenacity.RetryCallState) -> BaseException:
    error = tried.outcome.exception() if tried.outcome is not None else None
    assert error is not None, "waits only follow failures"
    return error
