"""Streams to clients that read slowly, or not for a while."""

import asyncio
import socket
import threading
import time
from urllib.parse import urlsplit

import orjson

from gateway.metering.record import CallStatus
from tests.support.exchange import Exchange
from tests.support.gateway import KEY, chat_body, running_gateway
from tests.support.scripts import chat_chunk
from tests.support.upstream import ScriptedUpstream

_PADDING = "x" * 30_000
_TOO_MUCH = 64 * 2**20


class _Flood:
    """Texts with numbers, as fast as they are taken, until it is enough."""

    def __init__(self) -> None:
        self.written = self.texts = 0
        self.enough = threading.Event()

    async def __call__(self, exchange: Exchange) -> None:
        exchange.head(200, {"content-type": "text/event-stream"})
        while not self.enough.is_set() and self.written < _TOO_MUCH:
            await asyncio.sleep(
                0.001
            )  # so that each comes by itself, and can be passed on as it is
            if not exchange._transport.get_write_buffer_size():
                self._event(exchange, chat_chunk(f"{self.texts} {_PADDING}"))
                self.texts += 1
        self._event(exchange, chat_chunk(finish="stop"))
        exchange.chunk(b"data: [DONE]\n\n")
        exchange.end()

    def _event(self, exchange: Exchange, chunk: object) -> None:
        data = b"data: %b\n\n" % orjson.dumps(chunk)
        exchange.chunk(data)
        self.written += len(data)

    def stands_still(self) -> None:
        """Wait until half a second has passed without a byte."""
        before = -1
        while before != self.written:
            before = self.written
            time.sleep(0.5)


def test_a_client_that_half_closes_has_left(upstream: ScriptedUpstream) -> None:
    """Also while it takes nothing: its place and its target are free within a second."""
    flood = _Flood()
    upstream.enqueue(flood)
    body = orjson.dumps(chat_body(stream=True))
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: h\r\nauthorization: Bearer {KEY}\r\n"
    head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    with running_gateway({"up": {"base_url": upstream.url}}) as gateway, socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", urlsplit(gateway.root).port))
        client.sendall(head.encode() + body)
        flood.stands_still()
        client.shutdown(socket.SHUT_WR)
        upstream.wait(lambda: upstream.requests[0].peer_closed_at, timeout=1.0)
        record = gateway.settled(1, timeout=1.0)[0]
        assert record.outcome.status is CallStatus.CANCELLED
        assert gateway.admission.running("up", record.intent.lane) == 0


def test_a_client_that_does_not_read_holds_up_its_target(upstream: ScriptedUpstream) -> None:
    """Nothing piles up; when it reads on every text comes, once and in order."""
    flood = _Flood()
    upstream.enqueue(flood)
    with (
        running_gateway({"up": {"base_url": upstream.url}}) as gateway,
        gateway.streamed(30) as answer,
    ):
        flood.stands_still()
        assert 2**20 < flood.written < _TOO_MUCH
        flood.enough.set()
        events = [line[6:] for line in answer.iter_lines() if line.startswith("data: ")]
        chunks = [orjson.loads(event) for event in events[:-2]]
        numbers = [int(c["choices"][0]["delta"]["content"].split()[0]) for c in chunks]
        assert numbers == list(range(flood.texts))
        assert events[-1] == "[DONE]"
