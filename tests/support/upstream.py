"""A real OpenAI-compatible HTTP server on 127.0.0.1 whose every byte a test can decide.

It runs in a thread with its own event loop, so it also serves tests that block. Without a script
it is a correct OpenAI server (see ``answers``). Scripts are taken from ``enqueue`` (the next
requests, whatever they are), then from the first rule that matches.
"""

import asyncio
import contextlib
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from tests.support import answers
from tests.support.answers import Pace, Shape
from tests.support.exchange import Exchange, Seen
from tests.support.scripts import Script
from tests.support.wire import Connection

Match = Callable[[Seen], bool]


@dataclass
class _Rule:
    match: Match
    script: Script
    times: int | None


class ScriptedUpstream:
    """``url`` ends in ``/v1``, as a base URL does.

    ``pace`` is how fast default answers come; ``slots`` bounds how many run at once (the others
    wait, as in an engine); ``idle_close`` closes kept-alive connections after so many seconds;
    ``accept_delay`` waits before each accept; ``pages`` are status and body of GETs by path;
    ``models`` are refused with 404 when not listed (None: every name is served). ``running`` counts
    calls that are here, ``peak`` the most of them
    ever, ``generating`` those that have a slot.
    """

    def __init__(self, *, models: list[str] | None = None, pace: Pace | None = None) -> None:
        self.models = models
        self.pace = pace or Pace()
        self.idle_close: float | None = None
        self.accept_delay = 0.0
        self.pages: dict[str, tuple[int, bytes]] = {}
        self.requests: list[Seen] = []
        self.connections = 0
        self.running = 0
        self.generating = 0
        self.peak = 0
        self.port = 0
        self._slots: asyncio.Semaphore | None = None
        self._queue: deque[Script] = deque()
        self._rules: list[_Rule] = []
        self._open: set[Connection] = set()
        self._loop = asyncio.new_event_loop()
        self._thread: threading.Thread | None = None
        self._listener: socket.socket | None = None
        self._joining: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        """Base URL for a policy or client."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def open_connections(self) -> int:
        """TCP connections open now."""
        return len(self._open)

    def start(self) -> Self:
        """Listen (again, on the same port, after ``refuse``)."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
            self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(5)
        return self

    def refuse(self) -> None:
        """Stop listening and drop every connection: new ones are refused until ``start``."""
        asyncio.run_coroutine_threadsafe(self._unlisten(), self._loop).result(5)

    def stop(self) -> None:
        """End the server and its thread."""
        if self._thread is None:
            return
        self.refuse()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()
        self._thread = None

    def limit(self, slots: int) -> None:
        """Let at most ``slots`` answers run at once."""
        self._slots = asyncio.Semaphore(slots)

    def enqueue(self, *scripts: Script) -> None:
        """Use these for the next requests for a POST path, one each, in order."""
        self._queue.extend(scripts)

    def on(self, match: str | Match, script: Script, *, times: int | None = None) -> None:
        """Use ``script`` for requests that match: a model, a text in the body, or a function."""
        self._rules.append(_Rule(match if callable(match) else _mentions(match), script, times))

    def clear(self) -> None:
        """Forget scripts and the log."""
        self._queue.clear()
        self._rules.clear()
        self.requests.clear()
        self.peak = 0

    def calls(self, match: str | Match | None = None) -> list[Seen]:
        """Logged POST requests, oldest first, all or those that match."""
        test = match if callable(match) else _mentions(match or "")
        return [seen for seen in list(self.requests) if seen.method == "POST" and test(seen)]

    def usage(self) -> tuple[int, int]:
        """Prompt and completion tokens of every answer that was written to its end."""
        done = [seen.usage for seen in list(self.requests) if seen.completed and seen.usage]
        return (
            sum(usage.get("prompt_tokens", 0) for usage in done),
            sum(usage.get("completion_tokens", 0) for usage in done),
        )

    async def until(self, happened: Callable[[], Any], timeout: float = 5.0) -> None:  # noqa: ASYNC109
        """Wait until ``happened()`` is true; fails after ``timeout`` seconds."""
        async with asyncio.timeout(timeout):
            while not happened():  # noqa: ASYNC110 - any condition, from another thread
                await asyncio.sleep(0.005)

    def wait(self, happened: Callable[[], Any], timeout: float = 5.0) -> None:
        """As ``until``, blocking."""
        end = time.monotonic() + timeout
        while not happened():
            assert time.monotonic() < end, "the upstream did not see it in time"
            time.sleep(0.005)

    async def _listen(self) -> None:
        if self._listener is not None:
            return
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", self.port))
        listener.listen(1024)
        listener.setblocking(False)
        self.port = listener.getsockname()[1]
        self._listener = listener
        self._loop.call_later(self.accept_delay, self._expect, listener)

    def _expect(self, listener: socket.socket) -> None:
        if listener is self._listener:
            self._loop.add_reader(listener, self._accept, listener)

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(BlockingIOError):
            sock, _ = listener.accept()
            sock.setblocking(False)
            self._joining.add(joining := self._loop.create_task(self._join(sock)))
            joining.add_done_callback(self._joining.discard)
        if self.accept_delay:
            self._loop.remove_reader(listener)
            self._loop.call_later(self.accept_delay, self._expect, listener)

    async def _join(self, sock: socket.socket) -> None:
        await self._loop.connect_accepted_socket(lambda: Connection(self), sock)

    async def _unlisten(self) -> None:
        if self._listener is not None:
            self._loop.remove_reader(self._listener)
            self._listener.close()
        self._listener = None
        await asyncio.gather(*self._joining, return_exceptions=True)
        open_connections = list(self._open)
        for connection in open_connections:
            connection.drop()
        tasks = [c.task for c in open_connections if c.task is not None]
        await asyncio.gather(*tasks, return_exceptions=True)

    def joined(self, connection: "Connection") -> int:
        """A connection was accepted; returns its number."""
        self.connections += 1
        self._open.add(connection)
        return self.connections

    def left(self, connection: "Connection") -> None:
        """A connection is closed."""
        self._open.discard(connection)

    async def answer(self, exchange: Exchange) -> None:
        """Answer one request by script, rule or default."""
        if exchange.seen.method != "POST":
            await self._default(exchange)
            return
        self.running += 1
        self.peak = max(self.peak, self.running)
        try:
            async with self._slots or contextlib.nullcontext():
                self.generating += 1
                try:
                    await self._script_for(exchange.seen)(exchange)
                finally:
                    self.generating -= 1
        finally:
            self.running -= 1

    def _script_for(self, seen: Seen) -> Script:
        if self._queue:
            return self._queue.popleft()
        for rule in self._rules:
            if rule.times != 0 and rule.match(seen):
                rule.times = None if rule.times is None else rule.times - 1
                return rule.script
        return self._default

    async def _default(self, exchange: Exchange) -> None:
        seen = exchange.seen
        path = seen.path.partition("?")[0]
        if path in self.pages:
            exchange.full(*self.pages[path])
        elif path == "/v1/models":
            rows = [{"id": m, "object": "model", "owned_by": "test"} for m in self.models or []]
            exchange.json({"object": "list", "data": rows})
        elif path == "/metrics":
            exchange.full(200, f"headway_worker_rows_running {self.generating}\n".encode())
        elif self.models is not None and seen.model not in self.models:
            exchange.json(_error("no such model", "model_not_found"), 404)
        elif path == "/v1/chat/completions":
            await answers.generate(exchange, Shape(chat=True), self.pace)
        elif path == "/v1/completions":
            await answers.generate(exchange, Shape(chat=False), self.pace)
        elif path == "/v1/embeddings":
            await asyncio.sleep(self.pace.first)
            answers.embed(exchange)
        else:
            exchange.json(_error("no such path", None), 404)


def _mentions(text: str) -> Match:
    return lambda seen: seen.model == text or text in seen.text


def _error(message: str, code: str | None) -> dict[str, Any]:
    kind = "invalid_request_error"
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}
