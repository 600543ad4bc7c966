"""The OpenAI error object."""

from typing import Any


def error_body(
    message: str, type_: str, param: str | None = None, code: str | None = None
) -> dict[str, Any]:
    """``{"error": {...}}`` with all four members."""
    return {"error": {"message": message, "type": type_, "param": param, "code": code}}
