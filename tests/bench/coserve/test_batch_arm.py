"""Both lanes by way of a running gateway."""

from pathlib import Path

import aiohttp
import pytest

from gateway.bench.coserve.arms import Arm, Scene
from gateway.bench.coserve.batch_arm import Gateway, OfflineBatch, tokens_of
from gateway.bench.coserve.live import Target, run_live
from gateway.bench.workload.trace import Lengths
from gateway.core.errors import BenchmarkFailed
from gateway.simulator.profile import PROFILES
from tests.support.serve import KEY, headway
from tests.support.simulated import engine_process

MODEL = "m"


async def test_calls_and_a_batch_go_through_the_gateway(tmp_path: Path) -> None:
    """Offline tokens are those that the engine counted; the batch is gone at the end."""
    scene = Scene(
        PROFILES["a100-8b"],
        engines=1,
        rate=3.0,
        seconds=10.0,
        chat=Lengths(400, 0.3, 20, 0.3),
        offline=Lengths(300, 0.3, 30, 0.3),
        lead=1.0,
        tail=2.0,
    )
    async with engine_process("--profile", "a100-8b", "--model", MODEL) as (engine, _):
        policy = {
            "targets": {"up": {"kind": "vllm", "base_url": f"{engine}/v1", "models": [MODEL]}}
        }
        with headway(tmp_path, policy) as running:
            gateway = Gateway(running.base_url, MODEL, KEY)
            target = Target((f"{engine}/v1",), MODEL, "none", gateway=gateway)
            said: list[str] = []
            arms = [Arm("it", gateway=True)]
            played = await run_live(arms, scene, target, (1,), said.append)
            figures = played.arms["it"]
            assert figures["calls"].mean > 5
            assert figures["offline_tokens"].mean > 500
            assert 0 < figures["ttft_p50"].mean < 3000
            with running.client() as client:
                batches = client.get("/batches").json()["data"]
            (batch,) = batches
            assert batch["status"] in {"cancelled", "completed"}


async def test_a_gateway_that_refuses_is_said(tmp_path: Path) -> None:
    """With its own words."""
    async with engine_process("--model", MODEL) as (engine, _), aiohttp.ClientSession() as session:
        batch = OfflineBatch(session, Gateway(f"{engine}/v1", MODEL, "k"))
        with pytest.raises(BenchmarkFailed, match="POST files"):
            await batch.upload([(5, 5)], 1)
        await batch.stop()


async def test_engines_say_what_they_did(tmp_path: Path) -> None:
    """By the names of vLLM or SGLang; one that is silent is said."""
    body = {"model": MODEL, "prompt": "x" * 40, "max_tokens": 7}
    async with (
        engine_process("--model", MODEL) as (vllm, _),
        engine_process("--model", MODEL, "--metrics", "sglang") as (sglang, _),
        aiohttp.ClientSession() as session,
    ):
        for url in (vllm, sglang):
            async with session.post(f"{url}/v1/completions", json=body) as answer:
                assert answer.status == 200
        assert await tokens_of(session, [f"{vllm}/v1", f"{sglang}/v1"]) == (20, 14)
        async with session.post(f"{vllm}/control", json={"metrics": False}):
            pass
        with pytest.raises(BenchmarkFailed, match="no metrics"):
            await tokens_of(session, [f"{vllm}/v1"])
