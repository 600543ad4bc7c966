"""Lines of output and error files, in exact OpenAI form. Each ends with a newline.

An answer of the target with a status is a ``response``; everything else is an ``error``.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

import orjson

from gateway.core.exact_json import dumps, readable
from gateway.core.ids import new_id
from gateway.schemas.errors import error_body

CANCELLED = "batch_cancelled"
EXPIRED = "batch_expired"
MESSAGES = {
    CANCELLED: "This request was not executed because the batch was cancelled.",
    EXPIRED: "This request could not be executed before the completion window expired.",
    "max_deliveries": "This request was given up: it never finished in any of its deliveries.",
    "worker_crashed": "This request was given up: the engine crashed each time it ran.",
}
_LONGEST_TEXT = 1024
_FAILURES = range(400, 600)
_SERVER_FAULT = 500
_BAD_GATEWAY = 502


def success_line(custom_id: str, status: int, request_id: str, body: Mapping[str, Any]) -> bytes:
    """A line of the output file: the target answered 2xx."""
    return _line(custom_id, _response(status, request_id, body), None)


def http_error_line(custom_id: str, status: int, request_id: str, body: bytes) -> bytes:
    """A line of the error file: the target refused with ``status`` and ``body``.

    A body that is an OpenAI error goes in as it is, missing members as null; of any other body
    up to 1 kB of text is kept as the message.
    """
    status = status if status in _FAILURES else _BAD_GATEWAY
    return _line(custom_id, _response(status, request_id, _error_of(body, status)), None)


def transport_error_line(custom_id: str, code: str, message: str) -> bytes:
    """A line of the error file: there is no HTTP answer to show."""
    return _line(custom_id, None, {"code": code, "message": message or MESSAGES.get(code, code)})


def unexecuted_line(job: str, place: int, custom_id: str, code: str) -> bytes:
    """The line of a row that was not run; the same row of a job gets the same line every time."""
    digest = hashlib.sha256(f"{job}/{place}".encode()).hexdigest()[:24]
    error = {"code": code, "message": MESSAGES.get(code, code)}
    return _line(custom_id, None, error, f"batch_req_{digest}")


def custom_id_in(line: bytes) -> str:
    """The id in an input line; empty when the line cannot be read."""
    try:
        return str(orjson.loads(line)["custom_id"])
    except (orjson.JSONDecodeError, LookupError, TypeError):
        return ""


def _line(
    custom_id: str,
    response: Mapping[str, Any] | None,
    error: Mapping[str, str] | None,
    line_id: str | None = None,
) -> bytes:
    line = {
        "id": line_id or new_id("batch_req"),
        "custom_id": custom_id,
        "response": response,
        "error": error,
    }
    try:
        return orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)
    except orjson.JSONEncodeError:
        return dumps(readable(line)) + b"\n"


def _response(status: int, request_id: str, body: Mapping[str, Any]) -> dict[str, Any]:
    return {"status_code": status, "request_id": request_id, "body": body}


def _error_of(body: bytes, status: int) -> dict[str, Any]:
    try:
        parsed = orjson.loads(body)
    except orjson.JSONDecodeError:
        parsed = None
    error = parsed.get("error") if isinstance(parsed, dict) else None
    if isinstance(error, dict) and isinstance(error.get("message"), str) and error["message"]:
        return {**parsed, "error": {**error, **_four_members(error)}}
    text = body.decode("utf-8", "replace").strip()[:_LONGEST_TEXT]
    text = text.encode()[:_LONGEST_TEXT].decode("utf-8", "ignore")
    kind = "server_error" if status >= _SERVER_FAULT else "invalid_request_error"
    return error_body(text or f"The target answered {status} with no text.", kind)


def _four_members(error: Mapping[str, Any]) -> dict[str, Any]:
    param, code = error.get("param"), error.get("code")
    return {
        "message": error["message"],
        "type": error["type"] if isinstance(error.get("type"), str) else "invalid_request_error",
        "param": None if param is None else str(param),
        "code": None if code is None else str(code),
    }
