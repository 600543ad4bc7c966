"""From an exception to a status, headers and the OpenAI error object. The only place that knows."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.exceptions import HTTPException

from gateway.core import errors as e
from gateway.core.exact_json import dumps, loads
from gateway.schemas.errors import error_body

RawHeaders = list[tuple[bytes, bytes]]

#: First match wins, so kinds stand before what they are a kind of.
_STATUS: tuple[tuple[type[e.HeadwayError], int], ...] = (
    (e.AuthenticationFailed, 401),
    (e.PermissionDenied, 403),
    (e.NotFound, 404),
    (e.MethodNotAllowed, 405),
    (e.Conflict, 409),
    (e.PayloadTooLarge, 413),
    (e.ClientError, 400),
    (e.Busy, 429),
    (e.Unavailable, 503),
    (e.ClientGone, 499),
    (e.UpstreamCredential, 502),
    (e.UpstreamRefused, 503),
    (e.UpstreamTimeout, 504),
    (e.StreamInterrupted, 502),
    (e.OutcomeUnknown, 502),
)
_TOLD = frozenset({500, 502, 503, 504})
_LONGEST_RETRY_AFTER = 60
_CONFLICT = 409


@dataclass(frozen=True, slots=True)
class ErrorAnswer:
    """What goes to the client."""

    status: int
    body: bytes
    headers: RawHeaders = field(default_factory=list)


def status_of(error: BaseException) -> int:
    """The HTTP status of ``error``: a target's own where it is true for the caller too."""
    if isinstance(error, HTTPException):
        return error.status_code
    for kind, status in _STATUS:
        if isinstance(error, kind):
            return status
    if isinstance(error, e.UpstreamRejected):
        return error.status or 502
    if isinstance(error, e.UpstreamThrottled):
        return 429 if error.status == 429 else 503  # noqa: PLR2004 - vendors have codes of their own
    if isinstance(error, e.UpstreamFailed):
        return error.status if error.status in _TOLD else 502
    return 500


def refusal(message: str, code: str | None = None) -> bytes:
    """The error object of what is refused without an exception: the caller's own fault."""
    return dumps(error_body(message, "invalid_request_error", None, code))


def object_of(error: BaseException) -> bytes:
    """The error object as JSON. Of an error that is not ours nothing is told."""
    if isinstance(error, HTTPException):
        message = "Method not allowed." if error.status_code == 405 else "Not found."  # noqa: PLR2004
        return refusal(message)
    if not isinstance(error, e.HeadwayError):
        return dumps(error_body("The gateway failed.", "server_error", None, "internal"))
    if isinstance(error, e.UpstreamError) and error.body:
        return error.body
    return dumps(error_body(error.message, error.type, error.param, error.code))


def members_of(error: BaseException) -> dict[str, Any]:
    """``message``, ``type``, ``param`` and ``code`` as ``object_of`` has them."""
    members: dict[str, Any] = loads(object_of(error))["error"]
    return members


def answer_for(error: BaseException) -> ErrorAnswer:
    """Status, body and headers for ``error``."""
    status = status_of(error)
    headers: RawHeaders = [(b"content-type", b"application/json")]
    if isinstance(error, HTTPException) and error.headers:
        headers += _encoded(error.headers)
    if isinstance(error, e.AuthenticationFailed):
        headers.append((b"www-authenticate", b"Bearer"))
    seconds = _retry_after(error, status)
    if seconds is not None:
        headers.append((b"retry-after", b"%d" % seconds))
    if _useless_again(error):
        headers.append((b"x-should-retry", b"false"))
    return ErrorAnswer(status, object_of(error), headers)


def _useless_again(error: BaseException) -> bool:
    """Whether clients that would send again by themselves must not: nothing will change soon."""
    if isinstance(error, e.UpstreamRejected):
        return error.status == _CONFLICT
    used_up = getattr(error, "code", None) == e.INSUFFICIENT_QUOTA
    return used_up or isinstance(error, e.Conflict | e.UpstreamCredential)


def stream_event(error: BaseException) -> bytes:
    """The one event that ends a stream whose head has gone out."""
    return b"data: " + object_of(error) + b"\n\n"


def _retry_after(error: BaseException, status: int) -> int | None:
    """Whole seconds. What a target told is kept as it is; our own advice is 1 to 60."""
    if isinstance(error, e.UpstreamError):
        if error.retry_after is not None:
            return math.ceil(error.retry_after)
        return 1 if status in {429, 503} else None
    if isinstance(error, e.Busy | e.Unavailable):
        return min(max(math.ceil(error.retry_after), 1), _LONGEST_RETRY_AFTER)
    return None


def _encoded(headers: Mapping[str, str]) -> RawHeaders:
    return [(name.lower().encode(), value.encode()) for name, value in headers.items()]
