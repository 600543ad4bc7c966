"""What is answered to bytes that never became a request of the application."""

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from gateway.api.errors import refusal
from gateway.core.ids import new_id

LONGEST_HEAD = 64 * 1024
_MESSAGES = {
    400: "The request is not valid HTTP.",
    408: "The request did not come within the time for it.",
    414: f"The request URL is longer than {LONGEST_HEAD} bytes.",
    431: f"The request's head is longer than {LONGEST_HEAD} bytes.",
    501: "Of the transfer codings only chunked is supported.",
}


def refused(status: int) -> bytes:
    """The whole answer."""
    body = refusal(_MESSAGES[status])
    return (
        b"%bcontent-type: application/json\r\ncontent-length: %d\r\nx-request-id: %b\r\n"
        b"connection: close\r\n\r\n%b"
    ) % (STATUS_LINE[status], len(body), new_id("req").encode(), body)
