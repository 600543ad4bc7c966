"""What the client library's exceptions mean."""

import aiohttp
import httpx
import pytest

from gateway.core.errors import OutcomeUnknown, UpstreamTimeout
from gateway.providers.transport import before_head


def caused(cause: BaseException) -> httpx.HTTPError:
    """As the transport raises it."""
    error = httpx.ReadError("x")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("cause", "kind"),
    [
        (aiohttp.ServerDisconnectedError(), OutcomeUnknown),
        (aiohttp.ClientOSError(104, "reset"), OutcomeUnknown),
        (aiohttp.ConnectionTimeoutError("x"), UpstreamTimeout),
        (ConnectionResetError(), OutcomeUnknown),
        (ValueError("x"), OutcomeUnknown),
    ],
)
def test_meaning(cause: BaseException, kind: type[Exception]) -> None:
    """Each cause has one meaning."""
    assert type(before_head(caused(cause), "t")) is kind
