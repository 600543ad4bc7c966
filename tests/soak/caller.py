"""One client of a soak: one call, and what became of it."""

import asyncio
import json
import random
import time
from dataclasses import dataclass
from typing import Any

from tests.support.gateway import chat_body
from tests.support.plain_http import ask, end_of, id_of, status_of

_LIMIT = 30.0


@dataclass(frozen=True)
class Fate:
    """``end``: complete, error, left (by this client), hung or neither; the last two never may be.

    ``id`` is empty and ``status`` 0 when no head came.
    """

    id: str
    status: int
    end: str
    began: float
    ended: float


async def call(port: int, chance: random.Random, leaving: float) -> Fate:
    """A chat call, streamed or not; a share ``leaving`` goes away before its end."""
    stream, tokens = chance.random() < 0.6, chance.randint(2, 24)
    leaves = chance.uniform(0, 0.15) if chance.random() < leaving else None
    return await _answered(port, leaves, stream=stream, max_tokens=tokens)


async def long_call(port: int, tokens: int) -> Fate:
    """A streamed chat call of so many tokens, to its end."""
    return await _answered(port, None, stream=True, max_tokens=tokens)


async def _answered(port: int, leaves: float | None, **members: Any) -> Fate:
    body = json.dumps(chat_body("soak", **members)).encode()
    began, got = time.monotonic(), bytearray()
    try:
        async with asyncio.timeout(_LIMIT if leaves is None else leaves):
            await ask(port, "/v1/chat/completions", body, got)
    except TimeoutError:
        end = "hung" if leaves is None else "left"
    except OSError:
        end = end_of(got)
    else:
        end = end_of(got)
    return Fate(id_of(got), status_of(got), end, began, time.monotonic())
