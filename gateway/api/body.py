"""Reading a request body that has a limit."""

from starlette.types import Receive, Scope

from gateway.core.errors import ClientGone, PayloadTooLarge


async def read_body(scope: Scope, receive: Receive, limit: int) -> bytes:
    """The whole body. Raises PayloadTooLarge, by the declared length before a byte is read."""
    declared = dict(scope["headers"]).get(b"content-length", b"")
    if declared.isdigit() and int(declared) > limit:
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


def _too_large(limit: int) -> PayloadTooLarge:
    return PayloadTooLarge(f"The request body is larger than {limit} bytes.")
