"""What is refused before it is a request is refused as everything else is."""

import orjson
import pytest

from gateway.api.refused import refused
from tests.support.contract import checked


@pytest.mark.parametrize("status", [400, 408, 414, 431, 501])
def test_a_refusal_is_a_whole_answer(status: int) -> None:
    """A status line, an id, a length that is true, and the API's error object."""
    head, _, body = refused(status).partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    assert lines[0].startswith(b"HTTP/1.1 %d " % status)
    assert b"content-length: %d" % len(body) in lines
    assert b"connection: close" in lines
    assert b"\r\nx-request-id: req_" in head
    checked(orjson.loads(body), "error")
