"""From a result line to what the call would have been answered, and to the job's error."""

from dataclasses import dataclass
from typing import Any

from gateway.core.exact_json import dumps, loads_exactly
from gateway.schemas.errors import error_body

_BAD_GATEWAY = 502
_SERVER_FAULT = 500
#: The status that a synchronous call would have had; all others are 502.
_STATUS = {
    "model_not_found": 404,
    "internal_error": 500,
    "connection_error": 503,
    "timeout": 504,
}


@dataclass(frozen=True, slots=True)
class Result:
    """Status and body of an answer."""

    status: int
    body: bytes


def result_of(line: bytes) -> Result:
    """The answer in a result line."""
    parsed = loads_exactly(line)
    response = parsed["response"]
    if response is not None:
        return Result(response["status_code"], dumps(response["body"]))
    code, message = parsed["error"]["code"], parsed["error"]["message"]
    status = _STATUS.get(code, _BAD_GATEWAY)
    kind = "server_error" if status >= _SERVER_FAULT else "invalid_request_error"
    return Result(status, dumps(error_body(message, kind, None, code)))


def error_in(line: bytes) -> dict[str, Any]:
    """Code and message of a result line that is no success."""
    parsed = loads_exactly(line)
    error = parsed["error"] or parsed["response"]["body"]["error"]
    return {"code": error.get("code"), "message": error.get("message")}
