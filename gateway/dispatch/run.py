"""One row: the call, and what its answer means for the batch."""

import asyncio
import logging
from dataclasses import dataclass, replace

import orjson

from gateway.batches.lines import MESSAGES, http_error_line, success_line, transport_error_line
from gateway.core.clock import Clock
from gateway.core.errors import (
    INSUFFICIENT_QUOTA,
    ClientError,
    OutcomeUnknown,
    StreamInterrupted,
    UpstreamCredential,
    UpstreamError,
    UpstreamFailed,
    UpstreamRefused,
    UpstreamRejected,
    UpstreamThrottled,
)
from gateway.core.ids import new_id
from gateway.core.lanes import Lane
from gateway.core.rates import RateLimits
from gateway.core.usage import Usage
from gateway.core.work import RowFailure, TryKind
from gateway.dispatch.held import HeldRow
from gateway.dispatch.witness import Sign
from gateway.metering.counter import completed_usage
from gateway.metering.ledger import Ledger
from gateway.metering.record import Attempt, CallIntent, CallOutcome, CallStatus
from gateway.providers.broken_answers import UNUSABLE
from gateway.routing.offline import RowAnswer, RowCaller, RowPlace
from gateway.schemas.errors import error_body

log = logging.getLogger(__name__)

_RETRIED_STATUS = frozenset({408, 409})
_CLIENT_GONE = 499
_INVALID = 400
_NOT_FOUND = 404
_TOO_MANY = 429
_BROKEN = 500
_BAD_GATEWAY = 502


@dataclass(frozen=True, slots=True)
class Finished:
    """The row has its line; ``ok`` decides the file it goes to."""

    line: bytes
    usage: Usage
    ok: bool
    sign: Sign = Sign.ANSWERED


@dataclass(frozen=True, slots=True)
class Failed:
    """The row waits for another try; ``last_line`` is its line when there is none left.

    ``told`` are the seconds to wait that the target named, ``rates`` the limits it told of.
    """

    failure: RowFailure
    last_line: bytes
    sign: Sign
    told: float | None = None
    rates: RateLimits | None = None


def given_up(failed: Failed) -> Finished:
    """The row ends with what it has: its last line."""
    return Finished(failed.last_line, Usage(), ok=False, sign=failed.sign)


def unusable(held: HeldRow) -> Finished | None:
    """The end of a row that is not sent: its line is no request, or its endpoint refuses it."""
    source = held.source
    if source.fault is not None:
        line = transport_error_line(source.custom_id, "invalid_json_line", source.fault)
    elif source.refusal is not None:
        said = source.refusal
        body = orjson.dumps(error_body(said.message, said.type, said.param, said.code))
        line = http_error_line(source.custom_id, _INVALID, new_id("req"), body)
    else:
        return None
    return Finished(line, Usage(), ok=False)


def as_crash(held: HeldRow, failed: Failed, together: int) -> Failed:
    """The same failure of a row whose target died, with so many in all."""
    code = "max_deliveries"
    failure = replace(
        failed.failure, kind=TryKind.CRASH, code=code, retry_after_ms=0, together=together
    )
    line = transport_error_line(held.source.custom_id, code, MESSAGES[code])
    return replace(failed, failure=failure, last_line=line)


class RowRunner:
    """Runs rows against their targets and keeps their records."""

    def __init__(self, caller: RowCaller, ledger: Ledger, clock: Clock) -> None:
        self._caller = caller
        self._ledger = ledger
        self._clock = clock

    async def run(self, held: HeldRow, at: RowPlace) -> Finished | Failed:
        """One attempt there. Every outcome but cancellation is returned, none is raised."""
        request_id = new_id("req")
        record = self._ledger.open(self._intent(held, request_id))
        try:
            answer = await self._caller.call(
                held.run.model, held.run.endpoint, held.source.body, request_id, at
            )
            finished = _finished(held, answer, request_id)
        except asyncio.CancelledError:
            record.close(self._outcome(CallStatus.CANCELLED, _CLIENT_GONE))
            raise
        except UpstreamError as error:
            record.close(self._failure(error))
            return _failed(held, error, request_id)
        except ClientError as error:
            record.close(self._outcome(CallStatus.FAILED, _NOT_FOUND))
            return _refused(held, error)
        except Exception:
            log.exception("a row of %s could not be run", held.run.segment)
            record.close(self._outcome(CallStatus.FAILED, _BROKEN))
            return _broken(held)
        record.close(self._success(answer, finished.usage))
        return finished

    def told(self, held: HeldRow, outcome: RowAnswer | UpstreamError) -> Finished | Failed:
        """The result of a row that ran out of our sight, put on record."""
        request_id = new_id("req")
        record = self._ledger.open(self._intent(held, request_id))
        if isinstance(outcome, UpstreamError):
            record.close(self._failure(outcome))
            return _failed(held, outcome, request_id)
        finished = _finished(held, outcome, request_id)
        record.close(self._success(outcome, finished.usage))
        return finished

    def _intent(self, held: HeldRow, request_id: str) -> CallIntent:
        run = held.run
        return CallIntent(
            request_id,
            run.tenant,
            "",
            Lane.BATCH,
            "batch",
            run.endpoint,
            run.model,
            self._clock.now(),
            len(held.source.body),
            job=run.job,
        )

    def _success(self, answer: RowAnswer, usage: Usage) -> CallOutcome:
        return CallOutcome(
            CallStatus.OK,
            answer.status,
            usage,
            self._clock.now(),
            answer.target,
            answer.served_model,
            (Attempt(answer.target, answer.status),),
        )

    def _failure(self, error: UpstreamError) -> CallOutcome:
        begun = isinstance(error, StreamInterrupted | OutcomeUnknown)
        return CallOutcome(
            CallStatus.INTERRUPTED if begun else CallStatus.FAILED,
            error.status or _BAD_GATEWAY,
            Usage(),
            self._clock.now(),
            attempts=(Attempt(error.target, error.status, error.code),),
        )

    def _outcome(self, status: CallStatus, http_status: int) -> CallOutcome:
        return CallOutcome(status, http_status, Usage(), self._clock.now())


def _finished(held: HeldRow, answer: RowAnswer, request_id: str) -> Finished:
    line = success_line(held.source.custom_id, answer.status, request_id, answer.body)
    usage = completed_usage(answer.usage, answer.body, len(held.source.body))
    return Finished(line, usage, ok=True)


def _failed(held: HeldRow, error: UpstreamError, request_id: str) -> Finished | Failed:
    line = _error_line(held, error, request_id)
    if isinstance(error, UpstreamRejected) and error.status not in _RETRIED_STATUS:
        return Finished(line, Usage(), ok=False)
    if error.code in UNUSABLE and held.row.error_tries:
        return Finished(line, Usage(), ok=False)
    kind = TryKind.THROTTLE if isinstance(error, UpstreamThrottled) else TryKind.ERROR
    wait = int(1000 * (error.retry_after or 0))
    failure = RowFailure(held.row.index, kind, error.code or "upstream_error", wait)
    return Failed(failure, line, _sign(error), error.retry_after, error.rates)


def _sign(error: UpstreamError) -> Sign:
    if isinstance(error, UpstreamCredential) or error.code == INSUFFICIENT_QUOTA:
        return Sign.REJECTED
    if isinstance(error, UpstreamThrottled):
        # A 503 that names no time is an outage like any other.
        told = error.retry_after is not None or error.status == _TOO_MANY
        return Sign.THROTTLED if told else Sign.FAILED
    if isinstance(error, UpstreamRefused):
        return Sign.REFUSED
    if error.code in UNUSABLE or (isinstance(error, UpstreamFailed) and error.made):
        return Sign.ANSWERED
    if isinstance(error, OutcomeUnknown | StreamInterrupted):
        return Sign.LOST
    return Sign.FAILED


def _refused(held: HeldRow, error: ClientError) -> Finished:
    code = error.code or "invalid_request"
    line = transport_error_line(held.source.custom_id, code, error.message)
    return Finished(line, Usage(), ok=False)


def _broken(held: HeldRow) -> Failed:
    message = "The row could not be run because of an internal error."
    line = transport_error_line(held.source.custom_id, "internal_error", message)
    failure = RowFailure(held.row.index, TryKind.ERROR, "internal_error")
    return Failed(failure, line, Sign.ANSWERED)


def _error_line(held: HeldRow, error: UpstreamError, request_id: str) -> bytes:
    if error.status is None or isinstance(error, UpstreamCredential):
        code = error.code or "upstream_error"
        return transport_error_line(held.source.custom_id, code, error.message)
    body = error.text.encode() or error.body
    return http_error_line(held.source.custom_id, error.status, request_id, body)
