"""New calls are turned away while the process ends."""

import asyncio

import httpx
import pytest
from starlette.types import Receive, Scope, Send

from gateway.bootstrap.drain import Drain


async def _app(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"served"})


async def test_only_health_checks_are_served_while_draining() -> None:
    """503 with Retry-After, the error shape and a request id."""
    drain = Drain(_app)
    transport = httpx.ASGITransport(drain)
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
        assert (await client.get("/v1/models")).text == "served"
        drain.begin()
        refused = await client.get("/v1/models")
        assert refused.status_code == 503
        assert refused.json()["error"]["code"] == "draining"
        assert int(refused.headers["retry-after"]) >= 1
        assert refused.headers["x-request-id"]
        assert (await client.get("/livez")).text == "served"
    assert not await drain.serving()


async def test_a_call_that_is_called_off_is_told_so() -> None:
    """503 as for new ones; outside of the end a cancellation is what it was."""
    reached = asyncio.Event()

    async def stuck(scope: Scope, receive: Receive, send: Send) -> None:
        reached.set()
        await asyncio.Event().wait()

    drain = Drain(stuck)
    transport = httpx.ASGITransport(drain)
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
        call = asyncio.create_task(client.post("/v1/files"))
        await reached.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        reached.clear()
        call = asyncio.create_task(client.post("/v1/files"))
        await reached.wait()
        drain.begin()
        call.cancel()
        answer = await call
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "draining")
