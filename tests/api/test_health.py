"""Health checks."""

import httpx
import pytest
from starlette.routing import Router

from gateway.api.health import Health, Probe
from tests.support.gateway import running_gateway
from tests.support.scripts import error
from tests.support.upstream import ScriptedUpstream


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


async def test_targets_in_trouble_are_named() -> None:
    """Why, under its name; what can be served still is, so the status stays 200."""
    health = Health((Probe("targets", yes, required=True),), lambda: {"up": "refused"})
    transport = httpx.ASGITransport(Router(health.routes()))
    async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
        answer = await client.get("/readyz")
    assert answer.status_code == 200
    assert answer.json()["status"] == "degraded"
    assert answer.json()["targets"] == {"up": "refused"}


def test_a_target_that_refuses_the_key(
    upstream: ScriptedUpstream, caplog: pytest.LogCaptureFixture
) -> None:
    """The probe and the log say so, without the key; callers are not told what it is about."""
    upstream.on("hello", error(401, "Incorrect API key provided: sk-SECRET"))
    target = {"base_url": upstream.url, "api_key": "sk-SECRET"}
    with running_gateway({"up": target}) as gateway:
        statuses = [gateway.chat().status_code for _ in range(7)]
        told = httpx.get(f"{gateway.root}/readyz").json()
    assert statuses == [502] * 5 + [503] * 2
    assert told["targets"] == {"up": "its key: refused, status 401"}
    said = [record.getMessage() for record in caplog.records if record.name.endswith("als")]
    assert said == ["target up, its key: refused, status 401"]
    assert "SECRET" not in caplog.text + str(told)
    assert caplog.text.count("target up is left out") == 1
