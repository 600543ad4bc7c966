"""Errors in the OpenAI shape."""

from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from gateway.core.errors import ClientError, HeadwayError, NotFound


def error_body(error: HeadwayError) -> dict[str, Any]:
    """The ``error`` object of an answer or a stream event."""
    return {
        "error": {
            "message": error.message,
            "type": error.type,
            "param": error.param,
            "code": error.code,
        }
    }


def status_of(error: HeadwayError) -> int:
    """400 or 404 for the caller's faults, 500 for ours."""
    if isinstance(error, NotFound):
        return 404
    return 400 if isinstance(error, ClientError) else 500


async def error_response(_: Request, error: Exception) -> Response:
    """The answer for an error of the tree."""
    assert isinstance(error, HeadwayError)
    return JSONResponse(error_body(error), status_of(error))


async def no_route(request: Request, error: Exception) -> Response:
    """The answer for a path or method that does not exist."""
    found = NotFound(f"There is no {request.method} {request.url.path} here.")
    return JSONResponse(error_body(found), getattr(error, "status_code", 404))
