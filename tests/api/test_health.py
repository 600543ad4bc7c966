"""Health checks."""

import httpx
import pytest
from starlette.routing import Router

from gateway.api.health import Health, Probe


async def yes() -> bool:
    """Fine."""
    return True


async def no() -> bool:
    """Amiss."""
    return False


@pytest.mark.parametrize(
    ("probes", "status", "word"),
    [
        ((), 200, "ok"),
        ((Probe("queue", yes), Probe("targets", yes, required=True)), 200, "ok"),
        ((Probe("queue", no), Probe("targets", yes, required=True)), 200, "degraded"),
        ((Probe("queue", yes), Probe("targets", no, required=True)), 503, "unavailable"),
    ],
)
async def test_readiness(probes: tuple[Probe, ...], status: int, word: str) -> None:
    """Ready while interactive calls can be served; the body tells what is amiss."""
    transport = httpx.ASGITransport(Router(Health(probes).routes()))
    async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
        answer = await client.get("/readyz")
        assert answer.status_code == status
        assert answer.json()["status"] == word
        failing = {name for name, state in answer.json()["checks"].items() if state != "ok"}
        assert bool(failing) is (word != "ok")
        assert (await client.get("/livez")).json() == {"status": "ok"}
