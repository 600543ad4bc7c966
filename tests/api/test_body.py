"""Reading a body."""

import threading
from typing import Any

import pytest

from gateway.api.body import parsed, read_body
from gateway.core.errors import ClientGone, InvalidRequest, PayloadTooLarge


async def read(*messages: dict[str, Any], length: bytes | None = None) -> bytes:
    """The body of these messages, at most 10 bytes."""
    left = list(messages)

    async def receive() -> dict[str, Any]:
        return left.pop(0)

    headers = [] if length is None else [(b"content-length", length)]
    return await read_body({"headers": headers}, receive, 10)


def part(body: bytes, *, more: bool = False) -> dict[str, Any]:
    """A piece of a body."""
    return {"type": "http.request", "body": body, "more_body": more}


async def test_pieces_are_joined() -> None:
    """One piece or several make one body."""
    assert await read(part(b"abc")) == b"abc"
    assert await read(part(b"ab", more=True), part(b"c", more=True), part(b"")) == b"abc"
    assert await read({"type": "http.request"}) == b""


async def test_too_large_is_refused_early() -> None:
    """By the declared length before a byte is read, else as soon as it is over."""
    with pytest.raises(PayloadTooLarge):
        await read(length=b"11")
    with pytest.raises(PayloadTooLarge):
        await read(part(b"x" * 6, more=True), part(b"x" * 6, more=True))


async def test_a_caller_that_leaves() -> None:
    """Half a body is no request."""
    with pytest.raises(ClientGone):
        await read(part(b"x", more=True), {"type": "http.disconnect"})


async def test_a_large_body_is_parsed_beside_the_loop() -> None:
    """A small one is not worth a thread; a fault is raised as it is either way."""
    own = threading.get_ident()

    def where(body: bytes) -> int:
        if body.endswith(b"!"):
            raise ValueError(len(body))
        return threading.get_ident()

    assert await parsed(where, b"x" * 100_000, 9) == own
    assert await parsed(where, b"x" * 200_000, 9) != own
    for size in (10, 200_000):
        with pytest.raises(ValueError, match=str(size)):
            await parsed(where, b"x" * (size - 1) + b"!", 9)


async def test_too_many_parts_are_refused_unread() -> None:
    """Objects and arrays count, brackets within texts do not; a short body is read as it is."""

    def never(body: bytes) -> None:
        raise AssertionError(len(body))

    with pytest.raises(InvalidRequest, match="50 objects") as refused:
        await parsed(never, b"[%b]" % b",".join([b"{}"] * 100_000), 50)
    assert refused.value.code == "too_many_parts"
    assert await parsed(len, b'["%b",{}]' % (b"{[" * 100_000), 50) == 200_007
    assert await parsed(len, b"{}" * 100, 50) == 200
