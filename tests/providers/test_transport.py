"""What the client library's exceptions mean."""

import aiohttp
import httpx
import pytest

from gateway.core.errors import (
    OutcomeUnknown,
    UpstreamTimeout,
)
from gateway.providers.transport import before_head, closed_before_answer


def caused(cause: BaseException) -> httpx.HTTPError:
    """As the transport raises it."""
    error = httpx.ReadError("x")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("cause", "kind", "closed"),
    [
        (aiohttp.ServerDisconnectedError(), OutcomeUnknown, True),
        (aiohttp.ClientOSError(104, "reset"), OutcomeUnknown, True),
        (aiohttp.ConnectionTimeoutError("x"), UpstreamTimeout, False),
        (ConnectionResetError(), OutcomeUnknown, True),
        (ValueError("x"), OutcomeUnknown, False),
    ],
)
def test_meaning(cause: BaseException, kind: type[Exception], *, closed: bool) -> None:
    """Each cause has one meaning, and only a bare close may be repeated on a kept connection."""
    assert type(before_head(caused(cause), "t")) is kind
    assert closed_before_answer(caused(cause)) is closed
