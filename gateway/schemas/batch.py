"""The Batch object and the request that creates one."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from gateway.core.endpoints import CHAT, COMPLETIONS, EMBEDDINGS, RESPONSES
from gateway.core.errors import InvalidRequest, InvalidType, MissingParameter
from gateway.core.usage import Usage
from gateway.schemas.durations import duration_seconds
from gateway.schemas.file import check_expiry
from gateway.schemas.requests import read_object, required_text

ENDPOINTS = (RESPONSES, CHAT, COMPLETIONS, EMBEDDINGS)
TIMES = (
    "in_progress_at",
    "expires_at",
    "finalizing_at",
    "completed_at",
    "failed_at",
    "expired_at",
    "cancelling_at",
    "cancelled_at",
)
_LONGEST_WINDOW = 30 * 86400
_PAIRS, _KEY, _VALUE = 16, 64, 512


class BatchStatus(StrEnum):
    """The states a client sees."""

    VALIDATING = "validating"
    FAILED = "failed"
    IN_PROGRESS = "in_progress"
    FINALIZING = "finalizing"
    COMPLETED = "completed"
    EXPIRED = "expired"
    CANCELLING = "cancelling"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class BatchCreate:
    """A checked request; ``window`` is the text as given, ``output_seconds`` None for 30 days."""

    input_file_id: str
    endpoint: str
    window: str
    window_seconds: int
    metadata: dict[str, str] | None
    output_seconds: int | None


@dataclass(frozen=True, slots=True)
class Counts:
    """Rows of a batch: all, those in the output file, those in the error file."""

    total: int = 0
    completed: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class Outlook:
    """When a running batch will be done (Unix seconds), and whether that is in time.

    None where it is not known; ``rows_per_second`` is the pace of its models, all batches together.
    ``paused``: an operator said so, of the batch, its tenant or everything.
    """

    eta: int | None
    rows_per_second: float | None
    deadline_at_risk: bool
    warning: str | None
    paused: bool = False


def parse_batch_create(body: bytes, min_window_seconds: float) -> BatchCreate:
    """Check a create request. Raises InvalidRequest or a subclass naming the member."""
    request = read_object(body)
    file_id = required_text(request, "input_file_id")
    endpoint = required_text(request, "endpoint")
    window = required_text(request, "completion_window")
    if endpoint not in ENDPOINTS:
        allowed = ", ".join(f"'{name}'" for name in ENDPOINTS)
        raise InvalidRequest(
            f"endpoint must be one of {allowed}.", param="endpoint", code="invalid_value"
        )
    seconds = _window_seconds(window, min_window_seconds)
    return BatchCreate(
        file_id, endpoint, window, seconds, _metadata(request.get("metadata")), _output(request)
    )


def batch_object(
    fixed: Mapping[str, Any], *, counts: Counts, usage: Usage, outlook: Outlook | None = None
) -> dict[str, Any]:
    """The Batch object. ``fixed`` has the members that are stored; absent ones become null.

    ``headway`` is ours: null unless the batch runs.
    """
    errors = fixed.get("errors")
    return {
        "id": fixed["id"],
        "object": "batch",
        "endpoint": fixed["endpoint"],
        "model": fixed.get("model"),
        "errors": {"object": "list", "data": list(errors)} if errors else None,
        "input_file_id": fixed["input_file_id"],
        "completion_window": fixed["completion_window"],
        "status": str(fixed["status"]),
        "output_file_id": fixed.get("output_file_id"),
        "error_file_id": fixed.get("error_file_id"),
        "created_at": fixed["created_at"],
        **{name: fixed.get(name) for name in TIMES},
        "request_counts": {
            "total": counts.total,
            "completed": counts.completed,
            "failed": counts.failed,
        },
        "usage": usage.to_responses(),
        "metadata": fixed.get("metadata"),
        "headway": None if outlook is None else asdict(outlook),
    }


def _window_seconds(window: str, least: float) -> int:
    seconds = duration_seconds(window)
    if seconds is None or not least <= seconds <= _LONGEST_WINDOW:
        raise InvalidRequest(
            "completion_window must be a time such as '24h', '90m' or '2d', "
            f"from {least:g} seconds to 30 days.",
            param="completion_window",
            code="invalid_value",
        )
    return seconds


def _metadata(value: object) -> dict[str, str] | None:
    if value is None:
        return None
    if not isinstance(value, dict):
        raise InvalidType("metadata must be an object.", param="metadata")
    if len(value) > _PAIRS:
        raise InvalidRequest(
            f"metadata must have at most {_PAIRS} pairs.",
            param="metadata",
            code="object_above_max_properties",
        )
    for key, text in value.items():
        param = f"metadata.{key[:_KEY]}"
        if not isinstance(text, str):
            raise InvalidType(f"{param} must be a string.", param=param)
        if len(key) > _KEY or len(text) > _VALUE:
            raise InvalidRequest(
                f"{param}: a key has at most {_KEY} characters, a value at most {_VALUE}.",
                param=param,
                code="string_above_max_length",
            )
    return value


def _output(request: Mapping[str, Any]) -> int | None:
    value = request.get("output_expires_after")
    if value is None:
        return None
    if not isinstance(value, dict):
        raise InvalidType("output_expires_after must be an object.", param="output_expires_after")
    if not value:
        raise MissingParameter(
            "output_expires_after.anchor is missing.", param="output_expires_after.anchor"
        )
    return check_expiry(value.get("anchor"), value.get("seconds"), "output_expires_after")
