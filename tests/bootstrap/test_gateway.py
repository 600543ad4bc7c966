"""The gateway's objects fit together."""

from pathlib import Path

import httpx

from gateway.bootstrap.gateway import build_gateway
from gateway.core.clock import SystemClock
from gateway.core.settings import Settings
from gateway.policy.model import Policy
from tests.support.serve import one_target
from tests.support.upstream import ScriptedUpstream


async def test_it_serves_calls_files_and_batches(
    tmp_path: Path, store_url: str, upstream: ScriptedUpstream
) -> None:
    """One application with every route, closed without a leftover."""
    policy = Policy.model_validate(one_target(upstream.url))
    settings = Settings(data_dir=tmp_path)
    gateway = await build_gateway(settings, policy, store_url, "hw-k", SystemClock())
    transport = httpx.ASGITransport(gateway.app)
    headers = {"authorization": "Bearer hw-k"}
    async with httpx.AsyncClient(
        transport=transport, base_url="http://gateway/v1", headers=headers
    ) as client:
        body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
        assert (await client.post("/chat/completions", json=body)).status_code == 200
        for path in ("/models", "/files", "/batches"):
            assert (await client.get(path)).json()["object"] == "list"
        gateway.drain()
        assert (await client.get("/models")).status_code == 503
    await gateway.aclose()
