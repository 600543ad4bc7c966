"""Reading a request body that has a limit."""

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar

from starlette.types import Receive, Scope

from gateway.core.errors import ClientGone, PayloadTooLarge

_MOST_DIGITS = 18
#: Bytes. Reading and checking so much takes up to 3 ms (many short messages), 5 MB 280 ms, and a
#: thread costs 0.1 ms: above it the streams of others are not held up.
_LARGE = 128 * 1024
_Parsed = TypeVar("_Parsed")


async def read_body(scope: Scope, receive: Receive, limit: int) -> bytes:
    """The whole body. Raises PayloadTooLarge, by the declared length before a byte is read."""
    if declared_length(scope["headers"]) > limit:
        raise _too_large(limit)
    pieces: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone("The caller left before the request was complete.")
        piece = message.get("body", b"")
        size += len(piece)
        if size > limit:
            raise _too_large(limit)
        pieces.append(piece)
        if not message.get("more_body"):
            return pieces[0] if len(pieces) == 1 else b"".join(pieces)


async def parsed(parse: Callable[[bytes], _Parsed], body: bytes) -> _Parsed:
    """``parse(body)``, of a large body in a thread."""
    if len(body) <= _LARGE:
        return parse(body)
    return await asyncio.to_thread(parse, body)


def declared_length(headers: Sequence[tuple[bytes, bytes]]) -> int:
    """The body's length as the client told it, 0 when it did not."""
    declared = dict(headers).get(b"content-length", b"")
    return int(declared[:_MOST_DIGITS]) if declared.isdigit() else 0


def _too_large(limit: int) -> PayloadTooLarge:
    return PayloadTooLarge(f"The request body is larger than {limit} bytes.")
