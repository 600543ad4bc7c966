"""The benchmark's own server."""

import asyncio
import json

import httpx
import psutil
import pytest

from gateway.bench.server import serving
from gateway.core.errors import BenchmarkFailed


async def test_it_answers_and_leaves_nothing_behind() -> None:
    """Gateway and model answer inside; afterwards no process and no file is left."""
    others = set(psutil.Process().children(recursive=True))
    async with serving() as server:
        family = [p for p in psutil.Process().children(recursive=True) if p not in others]
        assert len(family) >= 4
        async with httpx.AsyncClient(timeout=30) as client:
            headers = {"authorization": f"Bearer {server.api_key}"}
            models = await client.get(f"{server.url}/models", headers=headers)
            body = {"model": models.json()["data"][0]["id"], "prompt": "One", "max_tokens": 2}
            answer = await client.post(f"{server.worker_url}/completions", json=body)
        assert answer.status_code == 200
    assert not server.data_dir.exists()
    _, alive = await asyncio.to_thread(psutil.wait_procs, family, timeout=5)
    assert not alive


async def test_a_server_that_does_not_start_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of its log is the message."""
    monkeypatch.setenv("HEADWAY_POLICY", json.dumps("no such file"))
    with pytest.raises(BenchmarkFailed, match="no such file"):
        async with serving():
            pass
