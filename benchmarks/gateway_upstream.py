"""The upstream of ``gateway_calls.py``: answers of both APIs, whole or a token at a time."""

import asyncio
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import orjson
import uvloop

if TYPE_CHECKING:
    import multiprocessing

TOKENS = 100


def plain_answer() -> bytes:
    """A chat completion of about 600 bytes, with its head."""
    message = {"role": "assistant", "content": "word " * 60}
    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
    usage = {"prompt_tokens": 60, "completion_tokens": 60, "total_tokens": 120}
    head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m"}
    body = orjson.dumps({**head, "choices": [choice], "usage": usage})
    return b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)


def event(delta: dict[str, str], finish: str | None = None) -> bytes:
    """One event of a stream, as a chunk of a body."""
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return chunk(b"data: %b\n\n" % orjson.dumps({**head, "choices": [choice]}))


def chunk(data: bytes) -> bytes:
    """A part of a body."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def response(text: str, status: str) -> dict:
    """A response of one message, as a target with the endpoint tells it."""
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    item = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed"}
    details = {"input_tokens_details": {"cached_tokens": 0}}
    usage = {"input_tokens": 60, "output_tokens": 60, "total_tokens": 120, **details}
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "m",
        "status": status,
        "output": [{**item, "content": [part]}] if text else [],
        "usage": {**usage, "output_tokens_details": {"reasoning_tokens": 0}} if text else None,
    }


def whole_response() -> bytes:
    """One with the text of ``plain_answer``, with its head."""
    body = orjson.dumps(response("word " * 60, "completed"))
    return b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)


def told(kind: str, number: int, **members: object) -> bytes:
    """One event of a response's stream, as a chunk of a body."""
    data = orjson.dumps({"type": kind, "sequence_number": number, **members})
    return chunk(b"event: %b\ndata: %b\n\n" % (kind.encode(), data))


def response_tokens() -> tuple[bytes, ...]:
    """The events of a response that bring its text, each a token."""
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0, "logprobs": []}
    return tuple(
        told("response.output_text.delta", i + 1, delta=f"tok{i} ", **place) for i in range(TOKENS)
    )


class Upstream(asyncio.Protocol):
    """Answers every call at once, or with a token each ``pace`` seconds, which the call names."""

    plain = plain_answer()
    head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
    tokens = tuple(event({"content": f"tok{i} "}) for i in range(TOKENS))
    last = event({}, "stop") + b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"
    whole = whole_response()
    begun = told("response.created", 0, response=response("", "in_progress"))
    parts = response_tokens()
    ended = (
        told("response.completed", TOKENS + 1, response=response("tok10 " * TOKENS, "completed"))
        + b"0\r\n\r\n"
    )

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for calls."""
        self.transport, self.buffer = transport, b""

    def data_received(self, data: bytes) -> None:
        """Answer when the body is whole."""
        self.buffer += data
        head, mark, body = self.buffer.partition(b"\r\n\r\n")
        if not mark or len(body) < int(head.lower().split(b"content-length: ")[1].split(b"\r")[0]):
            return
        self.buffer = b""
        native = b" /v1/responses " in head
        if b'"stream":true' in body:
            self.pace = float(orjson.loads(body)["user"])
            self.transport.write(self.head + (self.begun if native else b""))
            events = (*self.parts, self.ended) if native else (*self.tokens, self.last)
            self.step(iter(events), asyncio.get_running_loop().time())
        else:
            self.transport.write(self.whole if native else self.plain)

    def step(self, events: Iterator[bytes], due: float) -> None:
        """Send an event and come back for the next, in time with the clock."""
        event = next(events, None)
        if event is None or self.transport.is_closing():
            return
        self.transport.write(event)
        due += self.pace
        asyncio.get_running_loop().call_at(due, self.step, events, due)


def serve_upstream(ports: "multiprocessing.Queue[int]") -> None:
    """The upstream's process."""
    os.sched_setaffinity(0, {os.cpu_count() - 1})

    async def run() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(Upstream, "127.0.0.1", 0, backlog=1024)
        ports.put(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    uvloop.run(run())
