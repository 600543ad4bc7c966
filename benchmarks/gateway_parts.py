"""What the parts of a call cost inside the gateway's process, without a network.

    .venv/bin/python benchmarks/gateway_parts.py

Each part is run alone with the gateway's own code, in many short rounds; the least of them is told,
in microseconds of CPU. Alone means with warm caches: within a running gateway a part costs up to
twice as much, and the system calls come on top (`benchmarks/gateway_calls.py` has the whole).
"""

import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import orjson
import uvloop
from uvicorn.config import Config
from uvicorn.server import ServerState

from gateway.api.calls import Call, CallParts
from gateway.api.chunk_relay import ChunkRelay
from gateway.api.protocol import limited
from gateway.core.clock import SystemClock
from gateway.core.targets import Timeouts
from gateway.core.usage import Usage
from gateway.metering.counter import answer_usage
from gateway.metering.journal import Journal
from gateway.metering.ledger import JournalLedger
from gateway.metering.observed import MetricsObserver
from gateway.metering.record import CallStatus
from gateway.policy.model import Policy
from gateway.providers.answers import plain_answer
from gateway.providers.connection import Connection
from gateway.providers.registry import Registry
from gateway.routing.admission import Admission
from gateway.routing.classifier import Classifier
from gateway.routing.outgoing import outgoing_body
from gateway.routing.router import Router
from gateway.schemas.chat import parse_chat
from gateway.telemetry.metrics import Metrics
from gateway.tenancy.keys import KeyRing

ROUNDS, TIMES = 200, 50
KEY = "hw-bench-key"
HEADERS = [
    (b"host", b"127.0.0.1"),
    (b"authorization", b"Bearer " + KEY.encode()),
    (b"content-type", b"application/json"),
    (b"content-length", b"418"),
]
POLICY = {"targets": {"up": {"base_url": "http://127.0.0.1:1/v1", "models": ["m"]}}}


def request(size: int) -> bytes:
    """A chat request."""
    messages = [{"role": "user", "content": "x" * (size - 80)}]
    return orjson.dumps({"model": "m", "messages": messages, "temperature": 0.5})


def answer() -> bytes:
    """A chat completion of about 600 bytes."""
    message = {"role": "assistant", "content": "word " * 60}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    usage = {"prompt_tokens": 60, "completion_tokens": 60, "total_tokens": 120}
    head = {"id": "c", "object": "chat.completion", "created": 1, "model": "m"}
    return orjson.dumps({**head, "choices": [choice], "usage": usage})


def event(text: str) -> bytes:
    """One event of a stream."""
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": None}
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return b"data: %b\n\n" % orjson.dumps({**head, "choices": [choice]})


class Wire:
    """A transport that leads nowhere."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return lambda *_: None

    def is_closing(self) -> bool:
        """Never."""
        return False

    def get_write_buffer_size(self) -> int:
        """Nothing waits."""
        return 0


def tell(part: str, best: float, per: int = 1) -> None:
    """A line of the result."""
    sys.stdout.write(f"{part:56} {best / TIMES / per * 1e6:7.1f} µs\n")


def part(name: str, work: Callable[[], object], per: int = 1) -> None:
    """Time a part that waits for nothing."""
    best = float("inf")
    for _ in range(ROUNDS):
        begun = time.thread_time()
        for _ in range(TIMES):
            work()
        best = min(best, time.thread_time() - begun)
    tell(name, best, per)


async def waiting_part(name: str, work: Callable[[], Awaitable[object]]) -> None:
    """Time a part that goes over the event loop."""
    best = float("inf")
    for _ in range(ROUNDS):
        begun = time.thread_time()
        for _ in range(TIMES):
            await work()
        best = min(best, time.thread_time() - begun)
    tell(name, best)


def call_parts(folder: Path) -> CallParts:
    """What calls are made with, over a target that is never reached."""
    policy, clock = Policy.model_validate(POLICY), SystemClock()
    router = Router(policy)
    return CallParts(
        router,
        Registry.from_policy(policy, clock),
        Admission(policy, clock, router.states),
        Classifier(policy.classify),
        JournalLedger(Journal(folder), [MetricsObserver(Metrics(policy.served())).observe]),
        clock,
    )


async def server() -> None:
    """The protocol: bytes of a request to ASGI, and an answer to bytes, with its task."""
    told = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(answer()))]
    told += [(b"x-headway-%d" % i, b"value") for i in range(6)]

    async def app(_scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": told})
        await send({"type": "http.response.body", "body": answer_})

    answer_, body = answer(), request(418)
    lines = b"".join(b"%b: %b\r\n" % pair for pair in HEADERS[:3])
    data = b"POST /v1/chat/completions HTTP/1.1\r\n%bcontent-length: %d\r\n\r\n%b" % (
        lines,
        len(body),
        body,
    )
    config = Config(app, loop="none", lifespan="off", log_config=None)
    config.load()
    protocol = limited(30, 60)(config, ServerState(), {})
    protocol.connection_made(Wire())  # type: ignore[arg-type]

    async def once() -> None:
        protocol.data_received(data)
        while not protocol.cycle.response_complete:  # noqa: ASYNC110 - some turns of the loop
            await asyncio.sleep(0)

    await waiting_part("server protocol: request in, answer out", once)


async def client() -> None:
    """The connection to the target: request out, answer in."""
    loop, connection = asyncio.get_running_loop(), Connection("up")
    connection.connection_made(Wire())  # type: ignore[arg-type]
    sent, limits = request(418), Timeouts()
    data = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (
        len(answer()),
        answer(),
    )

    async def once() -> None:
        loop.call_soon(connection.data_received, data)
        await connection.send(sent, limits, loop.time() + 600)
        await connection.piece()

    await waiting_part("connection to the target: request out, answer in", once)


def call(parts: CallParts) -> None:
    """What is done with one plain call between the two protocols."""
    ring, body, large = KeyRing({}), request(418), request(36_000)
    caller = KeyRing.from_policy(Policy.model_validate(POLICY), KEY).find(KEY)
    assert caller is not None
    part("key looked up", lambda: ring.find(KEY))
    part("request read and checked, 418 B", lambda: parse_chat(body))
    part("request read and checked, 36 KB", lambda: parse_chat(large))
    path, small, long = "/v1/chat/completions", parse_chat(body), parse_chat(large)
    scrub = parts.registry.scrubber("up")

    def begun() -> Call:
        made = Call(parts, caller, path, small, "req_1")
        made.begin(HEADERS)
        return made

    def settled() -> None:
        made = begun()
        made.usage = Usage(60, 60)
        made.settle(CallStatus.OK, 200)

    (route,) = begun().plan.groups[0]
    part("classified, planned, record opened", begun)
    part("the same, and settled: record, journal, metrics", settled)
    part("body for the target, 418 B", lambda: outgoing_body(small.members, route, stream=False))
    part("body for the target, 36 KB", lambda: outgoing_body(long.members, route, stream=False))
    data = answer()
    part("answer read and checked", lambda: plain_answer(data, path, "up", scrub))
    known = plain_answer(data, path, "up", scrub)
    part("usage of the answer", lambda: answer_usage(known, 418))
    relay = ChunkRelay("up", small, scrub, 0.0)
    relay.take(event("a"), 0.0)
    one, four = event("token "), b"".join(event(f"token{i} ") for i in range(4))
    escaped = event('"quoted"\n')
    part("stream: an event alone", lambda: relay.take(one, 1.0))
    part("stream: each of four events that come together", lambda: relay.take(four, 1.0), 4)
    part("stream: an event that must be parsed", lambda: relay.take(escaped, 1.0))


async def main() -> None:
    """Measure."""
    with tempfile.TemporaryDirectory() as folder:
        await server()
        await client()
        call(call_parts(Path(folder)))


if __name__ == "__main__":
    uvloop.run(main())
