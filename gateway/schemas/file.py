"""The File object and what an upload may say."""

from typing import Any

from gateway.core.errors import InvalidRequest, MissingParameter
from gateway.schemas.lists import whole_number

UPLOAD_PURPOSES = ("assistants", "batch", "fine-tune", "vision", "user_data", "evals")
BATCH = "batch"
BATCH_OUTPUT = "batch_output"
MIN_EXPIRY = 3600
MAX_EXPIRY = 2_592_000
_LONGEST_NAME = 1024


def check_purpose(purpose: str | None) -> str:
    """The purpose of an upload. Raises MissingParameter or InvalidRequest naming ``purpose``."""
    if not purpose:
        raise MissingParameter("purpose is missing.", param="purpose")
    if purpose not in UPLOAD_PURPOSES:
        allowed = ", ".join(f"'{name}'" for name in UPLOAD_PURPOSES)
        raise InvalidRequest(
            f"purpose must be one of {allowed}.", param="purpose", code="invalid_value"
        )
    return purpose


def check_filename(name: str) -> str:
    """The name is shown and never used as a path. Raises InvalidRequest when it is not text."""
    if not name or len(name) > _LONGEST_NAME or not all(c.isprintable() for c in name):
        raise InvalidRequest(
            f"The file name must be 1 to {_LONGEST_NAME} printable characters.",
            param="file",
            code="invalid_value",
        )
    return name


def check_expiry(anchor: object, seconds: object, param: str = "expires_after") -> int | None:
    """Seconds an object is kept after its creation; None when neither is given.

    ``seconds`` may be an integer or its text, as a form field is. Raises MissingParameter or
    InvalidRequest naming the member of ``param``.
    """
    if anchor is None and seconds is None:
        return None
    if anchor != "created_at":
        raise InvalidRequest(
            f"{param}.anchor must be 'created_at'.", param=f"{param}.anchor", code="invalid_value"
        )
    if seconds is None:
        raise MissingParameter(f"{param}.seconds is missing.", param=f"{param}.seconds")
    number = _integer(seconds)
    if number is None:
        raise InvalidRequest(
            f"{param}.seconds must be an integer.", param=f"{param}.seconds", code="invalid_type"
        )
    if not MIN_EXPIRY <= number <= MAX_EXPIRY:
        side = "below_min" if number < MIN_EXPIRY else "above_max"
        raise InvalidRequest(
            f"{param}.seconds must be between {MIN_EXPIRY} and {MAX_EXPIRY}.",
            param=f"{param}.seconds",
            code=f"integer_{side}_value",
        )
    return number


def file_object(
    file_id: str, *, size: int, created_at: int, filename: str, purpose: str, expires_at: int | None
) -> dict[str, Any]:
    """The File object; a file that can be seen is always ``processed``."""
    return {
        "id": file_id,
        "object": "file",
        "bytes": size,
        "created_at": created_at,
        "filename": filename,
        "purpose": purpose,
        "status": "processed",
        "expires_at": expires_at,
        "status_details": None,
    }


def _integer(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    return whole_number(value.strip()) if isinstance(value, str) else None
