"""One request over a plain connection, byte for byte, and whether its answer is whole."""

import asyncio
import contextlib
import json
import re

from tests.support.serve import KEY

_STATUS = re.compile(rb"HTTP/1\.1 (\d+)")
_DONE = (b"data: [DONE]", b"event: response.completed", b"event: response.incomplete")
_FAILED = (b'data: {"error"', b"event: response.failed", b"event: error")
_ID = re.compile(rb"x-request-id: (\S+)", re.IGNORECASE)


async def ask(port: int, path: str, body: bytes, got: bytearray) -> None:
    """POST ``body``; ``got`` grows by what comes back until the connection is closed."""
    head = (
        f"POST {path} HTTP/1.1\r\nhost: gateway\r\nconnection: close\r\n"
        f"authorization: Bearer {KEY}\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(head.encode() + body)
        while piece := await reader.read(65536):
            got += piece
    finally:
        writer.close()


def status_of(got: bytes | bytearray) -> int:
    """The status; 0 when there is none."""
    found = _STATUS.match(got)
    return int(found[1]) if found else 0


def id_of(got: bytes | bytearray) -> str:
    """The request's id; empty when there is none."""
    found = _ID.search(got)
    return found[1].decode() if found else ""


def end_of(got: bytes | bytearray) -> str:
    """``complete``, ``error``, or ``neither``."""
    head, _, body = bytes(got).partition(b"\r\n\r\n")
    if b"content-type: text/event-stream" in head.lower():
        done = any(mark in body for mark in _DONE)
        failed = any(mark in body for mark in _FAILED)
        if done is failed or not body.endswith(b"0\r\n\r\n"):
            return "neither"
        return "complete" if done else "error"
    with contextlib.suppress(ValueError, KeyError, TypeError):
        answer = json.loads(body)
        if 200 <= status_of(got) < 300:
            return "complete" if isinstance(answer, dict) else "neither"
        return "error" if answer["error"]["message"] else "neither"
    return "neither"
