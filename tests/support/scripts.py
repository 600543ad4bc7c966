"""Ready-made behaviours of the scripted upstream. A script is an async function of an Exchange."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.support.exchange import Exchange

Script = Callable[[Exchange], Awaitable[None]]


def error(
    status: int,
    message: str = "scripted",
    *,
    code: str | None = None,
    kind: str = "server_error",
    headers: Mapping[str, str] | None = None,
) -> Script:
    """An OpenAI error answer."""
    body = {"error": {"message": message, "type": kind, "param": None, "code": code}}
    return answer(body, status, headers=headers)


def answer(body: Any, status: int = 200, *, headers: Mapping[str, str] | None = None) -> Script:
    """A complete JSON answer; its ``usage`` is logged as sent."""

    async def script(exchange: Exchange) -> None:
        exchange.seen.usage = body.get("usage") if isinstance(body, dict) else None
        exchange.json(body, status, headers)

    return script


def raw(body: bytes, status: int = 200, *, headers: Mapping[str, str] | None = None) -> Script:
    """A complete answer of any bytes."""

    async def script(exchange: Exchange) -> None:
        exchange.full(status, body, headers)

    return script


def never() -> Script:
    """Read the request and answer nothing until the caller goes."""

    async def script(exchange: Exchange) -> None:
        del exchange
        await asyncio.Event().wait()

    return script


def hang_up(after: float = 0.0, *, reset: bool = False) -> Script:
    """Read the request, wait, then close (or reset) without a byte."""

    async def script(exchange: Exchange) -> None:
        await asyncio.sleep(after)
        if reset:
            exchange.reset()
        else:
            exchange.close()

    return script


def after(seconds: float, then: Script) -> Script:
    """Wait before doing ``then``."""

    async def script(exchange: Exchange) -> None:
        await asyncio.sleep(seconds)
        await then(exchange)

    return script


def once(happened: Callable[[], object], then: Script) -> Script:
    """Do ``then`` when ``happened()`` is true."""

    async def script(exchange: Exchange) -> None:
        while not happened():  # noqa: ASYNC110 - any condition, from another thread
            await asyncio.sleep(0.01)
        await then(exchange)

    return script


@dataclass(frozen=True)
class Sse:
    """A streamed answer under control; use it as a script.

    ``events`` are JSON values, or bytes written as they are (comments, broken lines). ``cut`` is
    where a write ends: ``"event"`` one write per event, ``"all"`` a single one, a number that many
    bytes. ``pause`` seconds follow each write. ``end`` says how it finishes: ``"done"`` with
    ``[DONE]``, ``"body"`` a proper end without it, ``"close"`` a closed connection in mid body,
    ``"reset"`` a TCP reset, ``"hang"`` nothing more ever.
    """

    events: Iterable[Any]
    end: Literal["done", "body", "close", "reset", "hang"] = "done"
    cut: Literal["event", "all"] | int = "event"
    pause: float = 0.0
    eol: str = "\n"
    space: bool = True
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)

    async def __call__(self, exchange: Exchange) -> None:
        """Write the whole answer."""
        frames = [self._frame(event) for event in self.events]
        if self.end == "done":
            frames.append(self._frame("[DONE]"))
        exchange.head(self.status, {"content-type": "text/event-stream", **self.headers})
        for event in self.events:
            if isinstance(event, dict) and event.get("usage"):
                exchange.seen.usage = event["usage"]
        for piece in self._pieces(frames):
            exchange.chunk(piece)
            await asyncio.sleep(self.pause)
        await self._finish(exchange)

    def _frame(self, event: Any) -> bytes:
        if isinstance(event, bytes):
            return event
        text = event if isinstance(event, str) else json.dumps(event, ensure_ascii=False)
        return f"data:{' ' if self.space else ''}{text}{self.eol}{self.eol}".encode()

    def _pieces(self, frames: list[bytes]) -> list[bytes]:
        if self.cut == "event":
            return frames
        whole = b"".join(frames)
        size = len(whole) if self.cut == "all" else self.cut
        return [whole[start : start + size] for start in range(0, len(whole), max(size, 1))]

    async def _finish(self, exchange: Exchange) -> None:
        if self.end in {"done", "body"}:
            exchange.end()
        elif self.end == "close":
            exchange.close()
        elif self.end == "reset":
            await asyncio.sleep(0.02)  # let what was written leave before the reset discards it
            exchange.reset()
        else:
            await asyncio.Event().wait()


def chat_chunk(
    text: str | None = None,
    *,
    role: str | None = None,
    finish: str | None = None,
    **extra: Any,
) -> dict[str, Any]:
    """One chat completion chunk; ``extra`` goes into the delta."""
    delta: dict[str, Any] = {**({"role": role} if role else {}), **extra}
    if text is not None:
        delta["content"] = text
    return {
        "id": "chatcmpl-scripted",
        "object": "chat.completion.chunk",
        "created": 1_760_000_000,
        "model": "m",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }


def usage_chunk(prompt: int, completion: int) -> dict[str, Any]:
    """The chunk that ends a stream with ``include_usage``."""
    usage = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }
    return {**chat_chunk(), "choices": [], "usage": usage}
