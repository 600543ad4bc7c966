"""One client of a soak: a plain connection, one call, and what became of it."""

import asyncio
import contextlib
import json
import random
import re
import time
from dataclasses import dataclass

from tests.support.gateway import chat_body
from tests.support.serve import KEY

_STATUS = re.compile(rb"HTTP/1\.1 (\d+)")
_ID = re.compile(rb"x-request-id: (\S+)", re.IGNORECASE)
_LIMIT = 30.0


@dataclass(frozen=True)
class Fate:
    """``end``: complete, error, left (by this client), or neither, which may never be."""

    id: str
    status: int
    end: str
    began: float
    ended: float


async def call(port: int, chance: random.Random, leaving: float) -> Fate:
    """A chat call, streamed or not; a share ``leaving`` goes away before its end."""
    stream = chance.random() < 0.6
    leaves = chance.uniform(0, 0.15) if chance.random() < leaving else None
    members = {"stream": stream, "max_tokens": chance.randint(2, 24)}
    began = time.monotonic()
    got = b""
    try:
        async with asyncio.timeout(_LIMIT if leaves is None else leaves):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                writer.write(_request(json.dumps(chat_body("soak", **members)).encode()))
                while piece := await reader.read(65536):
                    got += piece
            finally:
                writer.close()
    except TimeoutError:
        end = "left" if leaves is not None else "hung"
    except OSError:
        end = _end_of(got, stream=stream)
    else:
        end = _end_of(got, stream=stream)
    found, status = _ID.search(got), _STATUS.match(got)
    return Fate(
        found[1].decode() if found else "",
        int(status[1]) if status else 0,
        end,
        began,
        time.monotonic(),
    )


def _request(body: bytes) -> bytes:
    head = (
        "POST /v1/chat/completions HTTP/1.1\r\nhost: gateway\r\nconnection: close\r\n"
        f"authorization: Bearer {KEY}\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def _end_of(got: bytes, *, stream: bool) -> str:
    head, _, body = got.partition(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200"):
        with contextlib.suppress(ValueError, KeyError, TypeError):
            return "error" if json.loads(body)["error"]["message"] else "neither"
        return "neither"
    if not stream:
        with contextlib.suppress(ValueError, KeyError, IndexError):
            return "complete" if json.loads(body)["choices"][0]["finish_reason"] else "neither"
        return "neither"
    done, failed = b"data: [DONE]" in body, b'data: {"error"' in body
    if done is failed or not body.endswith(b"0\r\n\r\n"):
        return "neither"
    return "complete" if done else "error"
