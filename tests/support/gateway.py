"""The interactive side of the gateway over real HTTP, on policies of a test's choosing."""

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from gateway.api.app import AppParts, build_app
from gateway.api.body import BodyLimits
from gateway.api.calls import CallParts, StreamTimes
from gateway.api.health import Probe
from gateway.bootstrap.server import GatewayServer
from gateway.core.clock import SystemClock
from gateway.metering.ledger import JournalLedger
from gateway.metering.record import CallIntent, CallRecord
from gateway.policy.model import Policy
from gateway.providers.openai_http import LONGEST_ANSWER
from gateway.providers.registry import Registry
from gateway.routing.admission import Admission
from gateway.routing.classifier import Classifier
from gateway.routing.router import Router
from gateway.tenancy.keys import KeyRing

KEY = "sk-test-0123456789"
MODEL = "m"


@dataclass
class Records:
    """Every record, as the ledger closed it."""

    opened_calls: list[CallIntent] = field(default_factory=list)
    all: list[CallRecord] = field(default_factory=list)

    def opened(self, intent: CallIntent) -> None:
        """Keep the intent."""
        self.opened_calls.append(intent)

    def closed(self, record: CallRecord) -> None:
        """Keep the record."""
        self.all.append(record)

    @property
    def last(self) -> CallRecord:
        """The newest record."""
        return self.all[-1]


@dataclass
class RunningGateway:
    """A gateway in a thread. ``url`` ends in ``/v1``; ``root`` does not."""

    root: str
    records: Records
    admission: Admission

    @property
    def url(self) -> str:
        """Base URL for a client."""
        return f"{self.root}/v1"

    def post(self, path: str, body: Any, **headers: str) -> httpx.Response:
        """POST with the test key. Underscores in header names stand for hyphens."""
        return httpx.post(f"{self.root}{path}", json=body, headers=_with_key(headers), timeout=20)

    def chat(self, text: str = "hello there", **members: Any) -> httpx.Response:
        """One chat call."""
        return self.post("/v1/chat/completions", chat_body(text, **members))

    def streamed(
        self, timeout: float = 5.0, **headers: str
    ) -> AbstractContextManager[httpx.Response]:
        """A streamed chat call whose answer is still to be read."""
        sent, body = _with_key(headers), chat_body(stream=True)
        url = f"{self.url}/chat/completions"
        return httpx.stream("POST", url, json=body, headers=sent, timeout=timeout)

    def given_up(self, after: float = 0.2, *, stream: bool = False) -> None:
        """A chat call whose caller leaves when nothing came for ``after`` seconds."""
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(
                f"{self.url}/chat/completions",
                json=chat_body(stream=stream),
                headers=_with_key({}),
                timeout=httpx.Timeout(5, read=after),
            )

    def settled(self, count: int, timeout: float = 5.0) -> list[CallRecord]:
        """The records, once there are ``count`` of them."""
        wait_until(lambda: len(self.records.all) >= count, timeout)
        return self.records.all


def _with_key(headers: dict[str, str]) -> dict[str, str]:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return {"authorization": f"Bearer {KEY}", **sent}


def chat_body(text: str = "hello there", **members: Any) -> dict[str, Any]:
    """A small chat request."""
    return {"model": MODEL, "messages": [{"role": "user", "content": text}], **members}


def wait_until(happened: Callable[[], Any], timeout: float = 5.0) -> None:
    """Wait until ``happened()`` is true; fails after ``timeout`` seconds."""
    end = time.monotonic() + timeout
    while not happened():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.005)


@contextmanager
def running_gateway(
    targets: dict[str, dict[str, Any]],
    *,
    times: StreamTimes | None = None,
    probes: tuple[Probe, ...] = (),
    max_body_bytes: int = 2**20,
    max_answer_bytes: int = LONGEST_ANSWER,
    **policy: Any,
) -> Iterator[RunningGateway]:
    """A gateway over ``targets`` (policy entries by name; ``models`` defaults to ``[MODEL]``)."""
    entries = {name: {"models": [MODEL], **entry} for name, entry in targets.items()}
    rules = Policy.model_validate({"targets": entries, **policy})
    records, clock = Records(), SystemClock()
    router = Router(rules)
    admission = Admission(rules, clock, router.states)
    loop = asyncio.new_event_loop()
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)

    async def serve() -> None:
        registry = Registry.from_policy(rules, clock, max_answer_bytes)
        calls = CallParts(
            router,
            registry,
            admission,
            Classifier(rules.classify),
            JournalLedger(records),
            clock,
            times or StreamTimes(head_hold=rules.head_hold),
        )
        keys = KeyRing.from_policy(rules, KEY)
        parts = AppParts(
            calls, keys, BodyLimits(max_body_bytes), probes, origins=rules.cors.origins
        )
        app = build_app(parts)
        server.append(GatewayServer(app, log_level="info"))
        await server[0].serve([listener])
        await registry.aclose()

    server: list[GatewayServer] = []
    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()), daemon=True)
    thread.start()
    wait_until(lambda: server and server[0].started)
    port = listener.getsockname()[1]
    try:
        yield RunningGateway(f"http://127.0.0.1:{port}", records, admission)
    finally:
        server[0].should_exit = True
        server[0].force_exit = True
        thread.join(5)
        loop.close()
        listener.close()
