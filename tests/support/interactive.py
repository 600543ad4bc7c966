"""One gateway over one scripted upstream, for tests of the interactive wire."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import orjson
from openai import OpenAI

from tests.support.contract import checked
from tests.support.gateway import KEY, MODEL, RunningGateway, running_gateway
from tests.support.upstream import ScriptedUpstream


@dataclass
class Wire:
    """The gateway, its upstream, and the official client."""

    gateway: RunningGateway
    upstream: ScriptedUpstream
    client: OpenAI

    def sent(self) -> dict[str, Any]:
        """What the upstream got last."""
        return self.upstream.calls()[-1].json

    def ok(self, path: str, schema: str, **members: Any) -> dict[str, Any]:
        """The answer of a call that succeeds, held against its schema."""
        answer = self.gateway.post(path, {"model": MODEL, **members})
        assert answer.status_code == 200, answer.text
        body: dict[str, Any] = checked(answer.json(), schema)
        return body

    def refused(self, path: str, **members: Any) -> httpx.Response:
        """The answer of a call that does not, held against the error's schema."""
        answer = self.gateway.post(path, {"model": MODEL, **members})
        checked(answer.json(), "error")
        return answer

    def events(self, path: str, schema: str, **members: Any) -> list[dict[str, Any]]:
        """The chunks of a stream that ends with ``[DONE]``, each held against its schema."""
        answer = self.gateway.post(path, {"model": MODEL, "stream": True, **members})
        assert answer.headers["content-type"].startswith("text/event-stream")
        *events, done = [e.removeprefix("data: ") for e in answer.text.split("\n\n")[:-1]]
        assert done == "[DONE]"
        return [checked(orjson.loads(event), schema) for event in events]


@contextmanager
def wire(upstream: ScriptedUpstream, **target: Any) -> Iterator[Wire]:
    """A gateway with the one target ``up``."""
    with (
        running_gateway({"up": {"base_url": upstream.url, **target}}) as gateway,
        OpenAI(base_url=gateway.url, api_key=KEY, max_retries=0) as client,
    ):
        yield Wire(gateway, upstream, client)
