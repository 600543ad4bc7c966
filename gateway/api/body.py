"""Reading a request body that has a limit."""

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar

from starlette.types import Receive, Scope

from gateway.core.errors import ClientGone, InvalidRequest, PayloadTooLarge
from gateway.core.large_json import LARGE, has_more
from gateway.core.values import value

_MOST_DIGITS = 18
_Parsed = TypeVar("_Parsed")


@value
class BodyLimits:
    """How large a JSON body may be: its bytes, and the objects and arrays in it."""

    size: int
    parts: int = 50_000


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
            if size > LARGE:
                return await asyncio.to_thread(b"".join, pieces)
            return pieces[0] if len(pieces) == 1 else b"".join(pieces)


async def parsed(parse: Callable[[bytes], _Parsed], body: bytes, most_parts: int) -> _Parsed:
    """``parse(body)``, of a large body in a thread and only if it has no more parts than that.

    What is made of a body holds up all others for longer the more parts it has.
    """
    if len(body) <= LARGE:
        return parse(body)
    return await asyncio.to_thread(_parsed, parse, body, most_parts)


def _parsed(parse: Callable[[bytes], _Parsed], body: bytes, most_parts: int) -> _Parsed:
    if has_more(body, b"{[", most_parts):
        raise InvalidRequest(
            f"The body of the request has too many parts: it may have {most_parts} objects and "
            "arrays.",
            code="too_many_parts",
        )
    return parse(body)


def declared_length(headers: Sequence[tuple[bytes, bytes]]) -> int:
    """The body's length as the client told it, 0 when it did not."""
    declared = dict(headers).get(b"content-length", b"")
    return int(declared[:_MOST_DIGITS]) if declared.isdigit() else 0


def _too_large(limit: int) -> PayloadTooLarge:
    return PayloadTooLarge(f"The request body is larger than {limit} bytes.")
