"""The Job object and the request that creates one: a call of an inference endpoint, run later."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

import orjson

from gateway.core.endpoints import CHAT, COMPLETIONS, EMBEDDINGS, RESPONSES
from gateway.core.errors import InvalidRequest
from gateway.core.exact_json import dumps_ordered
from gateway.core.usage import Usage
from gateway.schemas.chat import parse_chat
from gateway.schemas.completions import parse_completion
from gateway.schemas.durations import duration_seconds
from gateway.schemas.embeddings import parse_embeddings
from gateway.schemas.requests import (
    ModelRequest,
    between,
    metadata,
    read_object,
    required,
    required_text,
    wrong_type,
)
from gateway.schemas.responses import (
    KEPT_HERE,
    SOONEST,
    WINDOWS,
    ResponseRequest,
    parse_response_row,
)

PARSERS: Mapping[str, Callable[[bytes], ModelRequest]] = {
    CHAT: parse_chat,
    COMPLETIONS: parse_completion,
    EMBEDDINGS: parse_embeddings,
    RESPONSES: parse_response_row,
}
DEFAULT_SECONDS = 86_400.0
MOST_PRIORITY = 9
_LONGEST = 30 * 86_400
_SHORTEST = 1
#: Numbers from here on are Unix times, smaller ones are seconds from now.
_FIRST_TIME = 10**9


class JobStatus(StrEnum):
    """The states a client sees. The last four are final."""

    QUEUED = "queued"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


ENDED = frozenset({JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.CANCELLED, JobStatus.EXPIRED})


@dataclass(frozen=True, slots=True)
class JobCreate:
    """A checked request. Seconds count from now; ``digest`` is equal for equal requests."""

    endpoint: str
    request: ModelRequest
    digest: str
    window_seconds: float = DEFAULT_SECONDS
    delay_seconds: float = 0.0
    priority: int = 0
    metadata: dict[str, str] | None = None


def parse_job_create(body: bytes, now: float) -> JobCreate:
    """Check the body of ``POST /v1/jobs``; the call in it as its own endpoint would.

    Raises InvalidRequest and its kinds.
    """
    members = read_object(body)
    endpoint = required_text(members, "endpoint")
    if endpoint not in PARSERS:
        allowed = ", ".join(f"'{name}'" for name in PARSERS)
        raise _invalid("endpoint", f"endpoint must be one of {allowed}.")
    call = required(members, "body")
    if not isinstance(call, dict):
        wrong_type("body", "an object")
    request = not_streamed(PARSERS[endpoint](dumped(call)))
    window = _window(members, now)
    delay = max(0.0, _moment(members, "not_before", now) or 0.0)
    if delay >= window:
        raise _invalid("not_before", "not_before must lie before the deadline.")
    if members.get("priority") is not None:
        between(0, MOST_PRIORITY, whole=True)("priority", members["priority"])
    if members.get("metadata") is not None:
        metadata("metadata", members["metadata"])
    return JobCreate(
        endpoint,
        request,
        _digest(members),
        window,
        delay,
        members.get("priority") or 0,
        members.get("metadata"),
    )


def deferred_call(endpoint: str, request: ModelRequest) -> JobCreate:
    """The job for a call whose sender prefers an asynchronous answer. Raises InvalidRequest."""
    digest = _digest({"endpoint": endpoint, "body": request.members})
    return JobCreate(endpoint, not_streamed(request), digest)


def deferred_response(request: ResponseRequest, items: list[dict[str, Any]]) -> JobCreate:
    """The job that makes a background response; ``items`` are the whole conversation."""
    members = {k: v for k, v in request.members.items() if k not in KEPT_HERE}
    members["input"] = items
    window = request.window or SOONEST
    return JobCreate(
        RESPONSES,
        replace(request.call, members=members, stream=False),
        _digest({"endpoint": RESPONSES, "body": request.members}),
        WINDOWS[window],
        priority=MOST_PRIORITY if window == SOONEST else 0,
        metadata=request.members.get("metadata"),
    )


def not_streamed(request: ModelRequest) -> ModelRequest:
    """``request``, unless it asks for a stream. Raises InvalidRequest."""
    if request.stream:
        raise InvalidRequest(
            "A call that is answered later cannot be streamed: leave out 'stream'.",
            param="stream",
            code="streaming_unsupported",
        )
    return request


def dumped(members: Mapping[str, Any]) -> bytes:
    """As JSON, equal for equal members. Raises InvalidRequest for what is nested too deeply."""
    try:
        return dumps_ordered(members)
    except orjson.JSONEncodeError:
        raise InvalidRequest("The body is nested too deeply.") from None


def job_object(fixed: Mapping[str, Any], usage: Usage) -> dict[str, Any]:
    """The Job object. ``fixed`` has what is stored; absent members become null."""
    ended = fixed["status"] in ENDED
    has_result = fixed["status"] in {JobStatus.COMPLETED, JobStatus.FAILED}
    return {
        "id": fixed["id"],
        "object": "job",
        "status": fixed["status"],
        "endpoint": fixed["endpoint"],
        "model": fixed["model"],
        "priority": fixed["priority"],
        "created_at": fixed["created_at"],
        "not_before": fixed.get("not_before"),
        "expires_at": fixed["expires_at"],
        **{f"{state}_at": fixed.get(f"{state}_at") for state in sorted(ENDED)},
        "usage": usage.to_openai() if ended else None,
        "error": fixed.get("error"),
        "result_url": f"/v1/jobs/{fixed['id']}/result" if has_result else None,
        "metadata": fixed.get("metadata"),
    }


def _window(members: Mapping[str, Any], now: float) -> float:
    """Seconds until the job expires; the member is called ``deadline`` or as batches call it."""
    names = [n for n in ("deadline", "completion_window") if members.get(n) is not None]
    if len(names) > 1:
        raise _invalid("deadline", "Give 'deadline' or 'completion_window', not both.")
    if not names:
        return DEFAULT_SECONDS
    window = _moment(members, names[0], now)
    if window is None or not _SHORTEST <= window <= _LONGEST:
        raise _invalid(names[0], f"{names[0]} must be from {_SHORTEST} second to 30 days from now.")
    return window


def _moment(members: Mapping[str, Any], name: str, now: float) -> float | None:
    """Seconds from now to a point in time: '20s', 20, a Unix time, or RFC 3339 with its zone."""
    value = members.get(name)
    if value is None:
        return None
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value - now if value >= _FIRST_TIME else float(value)
    if not isinstance(value, str):
        wrong_type(name, "a string or a number")
    seconds = duration_seconds(value)
    if seconds is not None:
        return float(seconds)
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise _invalid(
            name,
            f"{name} must be a time such as '90s', '24h', a number of seconds, a Unix time, or "
            "'2030-01-31T08:00:00Z'.",
        )
    return moment.timestamp() - now


def _digest(members: Mapping[str, Any]) -> str:
    return hashlib.sha256(dumped(members)).hexdigest()


def _invalid(name: str, message: str) -> InvalidRequest:
    return InvalidRequest(message, param=name, code="invalid_value")
