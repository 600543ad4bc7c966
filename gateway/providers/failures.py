"""What an answer of a target that is no success means, and what of it may be shown to a caller."""

import math
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import Any

from gateway.core.errors import (
    INSUFFICIENT_QUOTA,
    ContextLengthExceeded,
    UpstreamCredential,
    UpstreamError,
    UpstreamFailed,
    UpstreamRejected,
    UpstreamThrottled,
)
from gateway.core.exact_json import dumps, loads
from gateway.providers.error_shapes import (
    credential_status,
    error_members,
    is_its_own,
    is_moderation,
    is_too_long,
    members_of,
    names_of,
    told_wait,
)
from gateway.providers.scrubber import Scrubber
from gateway.schemas.errors import error_body

STREAM_FAILED = "upstream_stream_failed"
_CREDENTIAL = frozenset({401, 402, 403})
#: 498 is Groq's for a full flex tier, 529 Anthropic's for an overloaded service.
_THROTTLED = frozenset({429, 498, 503, 529})
_OWN_TYPES = {429: "rate_limit_error"}
_FILTERED = "content_filter"
_LONGEST_TEXT = 1024
_LONGEST_WAIT = 86_400.0
#: Codes of error events inside a 200 answer whose HTTP status is known.
_STATUS_OF_CODE = {
    INSUFFICIENT_QUOTA: 429,
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "context_length_exceeded": 400,
    "exceed_context_size_error": 400,
    "invalid_request_error": 400,
    _FILTERED: 400,
    "capacity_exceeded": 503,
    "overloaded": 503,
    "overloaded_error": 503,
    "server_overloaded": 503,
    "service_unavailable": 503,
    "unavailable_error": 503,
}
_STREAM_STATUS = frozenset({400, 401, 402, 403, 404, 413, 422, 429, 498, 503, 529})
_OK = 200
_CLIENT_ERRORS = range(400, 500)
_SERVER_ERRORS = range(500, 600)


def failure(
    target: str,
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    scrub: Scrubber,
    now: Callable[[], float],
) -> UpstreamError:
    """The error for an answer with ``status`` >= 300. ``body`` of it is safe to pass on."""
    members = members_of(body)
    if is_moderation(status, members):
        status, members = 400, {**members, "code": _FILTERED}
    elif status in _CREDENTIAL or credential_status(status, members):
        return _credential(target, status)
    wait = retry_after(headers, now)
    if wait is None:
        wait = told_wait(members)
    error = _classified(target, status, members, scrub, wait)
    error.text = _plain_text(body, scrub)
    return error


def _plain_text(body: bytes, scrub: Scrubber) -> str:
    """What an answer that is no JSON says, without secrets and addresses; at most 1 kB."""
    try:
        loads(body)
    except ValueError:
        text = scrub.clean(body.decode("utf-8", "replace").strip())
        return text.encode()[:_LONGEST_TEXT].decode("utf-8", "ignore")
    return ""


def stream_failure(target: str, error: Any, scrub: Scrubber) -> UpstreamError:
    """The error that a 200 tells of, in a stream or not; without a known meaning it is a 502.

    A target that failed in its stream has worked already, which ``code`` tells.
    """
    members = error_members(error)
    status = credential_status(_OK, members) or _status_told(members)
    if is_moderation(status or 0, members):
        status, members = 400, {**members, "code": _FILTERED}
    elif status in _CREDENTIAL:
        return _credential(target, status)
    failed = _classified(target, status or 502, members, scrub, None)
    if isinstance(failed, UpstreamFailed):
        failed.code = STREAM_FAILED
    return failed


def _status_told(members: dict[str, Any]) -> int | None:
    known = (_STATUS_OF_CODE.get(name) for name in names_of(members))
    status = next(filter(None, known), None)
    if status is not None:
        return status
    told = (members.get("code"), members.get("http_status_code"))
    return next((c for c in _STREAM_STATUS for t in told if t in (c, str(c))), None)


def _credential(target: str, status: int | None) -> UpstreamError:
    message = "The target did not accept the gateway's credential."
    return UpstreamCredential(message, target=target, status=status)


def _classified(
    target: str, status: int, members: dict[str, Any], scrub: Scrubber, wait: float | None
) -> UpstreamError:
    kind: type[UpstreamError]
    if status in _THROTTLED:
        kind = UpstreamThrottled
    elif status in _CLIENT_ERRORS and not is_its_own(status, members):
        kind = UpstreamRejected
        if is_too_long(status, members):
            members = {**members, "code": ContextLengthExceeded.code}
    else:
        kind = UpstreamFailed
    safe = _safe_body(status, members, scrub)
    code = safe["error"]["code"]
    shown = INSUFFICIENT_QUOTA if code == INSUFFICIENT_QUOTA else None
    if code == ContextLengthExceeded.code:
        shown = code
    return kind(
        safe["error"]["message"],
        target=target,
        status=status,
        body=dumps(safe),
        retry_after=wait,
        code=shown,
    )


def _safe_body(status: int, members: dict[str, Any], scrub: Scrubber) -> dict[str, Any]:
    message = members.get("message")
    text = message if isinstance(message, str) and message else f"The target answered {status}."
    default = _OWN_TYPES.get(
        status, "invalid_request_error" if status in _CLIENT_ERRORS else "server_error"
    )
    return error_body(
        scrub.clean(text),
        _text(members.get("type"), scrub) or default,
        _text(members.get("param"), scrub),
        _text(members.get("code"), scrub),
    )


def _text(value: Any, scrub: Scrubber) -> str | None:
    return scrub.clean(value) if isinstance(value, str) and value else None


def retry_after(headers: Mapping[str, str], now: Callable[[], float]) -> float | None:
    """Seconds to wait as the target says: ``retry-after-ms``, seconds, or an HTTP date.

    At most a day: nobody knows more, and rows of a batch would wait for it.
    """
    try:
        if (millis := headers.get("retry-after-ms")) is not None:
            return _bounded(float(millis) / 1000)
        value = headers.get("retry-after")
        if value is None:
            return None
        try:
            seconds = float(value)
        except ValueError:
            seconds = parsedate_to_datetime(value).timestamp() - now()
        return _bounded(seconds)
    except (ValueError, TypeError, OverflowError):
        return None


def _bounded(seconds: float) -> float | None:
    return min(max(seconds, 0.0), _LONGEST_WAIT) if math.isfinite(seconds) else None
