"""A load that is measured first, on a simulated engine and on the bundled worker."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator

import aiohttp
import httpx
import pytest

from gateway.bench.coserve.arms import Arm, Scene
from gateway.bench.coserve.fitting import Fitting, template_tokens
from gateway.bench.coserve.live import Played, Target, run_live
from gateway.bench.coserve.scenes import ALONE, HEADWAY, OFFLINE
from gateway.bench.coserve.slo import USUAL
from gateway.bench.workload.trace import CHAT, SUMMARIES
from gateway.core.errors import BenchmarkFailed
from gateway.pacing.shared import Caps
from gateway.simulator.profile import PROFILES
from gateway.worker.options import DEFAULT_MODEL
from tests.support.ports import free_port
from tests.support.simulated import MODEL, engine_process
from tests.support.upstream import ScriptedUpstream

ARMS = [Arm(ALONE), Arm(OFFLINE, cap=16, interactive=False), Arm(HEADWAY, caps=Caps())]
SCENE = Scene(
    PROFILES["a100-8b"],
    engines=1,
    rate=0.001,
    seconds=6.0,
    chat=CHAT.with_means(48, 12),
    offline=SUMMARIES.with_means(96, 24),
    lead=1.0,
    tail=1.0,
)


@pytest.fixture(scope="module")
def worker() -> Iterator[str]:
    """The base URL of ``headway worker`` over a tiny model."""
    port = free_port()
    argv = [sys.executable, "-m", "gateway", "worker", "--model", "tiny", "--port", str(port)]
    process = subprocess.Popen([*argv, "--device", "cpu"])
    try:
        transport = httpx.HTTPTransport(retries=50)
        with httpx.Client(transport=transport, timeout=60) as client:
            assert client.get(f"http://127.0.0.1:{port}/health").is_success
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait(20)


async def _played(url: str, model: str, fitting: Fitting) -> Played:
    def said(text: str) -> None:
        del text

    return await run_live(ARMS, SCENE, Target((url,), model, "none"), (1,), said, fitting)


async def test_calls_take_the_share_that_was_asked_for() -> None:
    """Of what offline work does alone, whatever rate was told."""
    async with engine_process("--profile", "a100-8b", "--model", MODEL) as (url, _):
        played = await _played(f"{url}/v1", MODEL, Fitting(share=0.2))
    rate, capacity = played.scene.rate, played.arms[OFFLINE]["offline_tokens"].mean
    assert rate * 60 == pytest.approx(0.2 * capacity)
    assert list(played.arms) == [arm.name for arm in ARMS]
    assert played.arms[ALONE]["calls"].mean == pytest.approx(4 * rate, rel=0.5)
    assert played.scene.slo == USUAL


async def test_the_bundled_worker_is_measured_with_a_load_that_suits_it(worker: str) -> None:
    """Calls are answered alone and beside rows; the SLO is that of this machine."""
    played = await _played(worker, DEFAULT_MODEL, Fitting(share=0.2, slo_times=3))
    alone, headway = played.arms[ALONE], played.arms[HEADWAY]
    assert alone["slo"].mean >= 0.9
    assert alone["calls"].mean > 5
    assert played.scene.slo != USUAL
    assert played.scene.slo.ttft >= 3 * alone["ttft_p50"].mean / 1000
    assert headway["offline_tokens"].mean > 0
    assert headway["harvest"].mean > 0


async def test_the_template_of_a_server_is_found(worker: str) -> None:
    """Prompts are as long as told, with what the server puts around them."""
    async with aiohttp.ClientSession() as session:
        found = await template_tokens(session, worker, DEFAULT_MODEL)
        assert 1 <= found < 400
        async with engine_process("--model", MODEL) as (url, _):
            assert await template_tokens(session, f"{url}/v1", MODEL) < 10


async def test_a_target_that_refuses_or_is_not_there_is_said(upstream: ScriptedUpstream) -> None:
    """Before any arm runs."""
    async with engine_process("--model", MODEL) as (url, _):
        with pytest.raises(BenchmarkFailed, match="http"):
            await _played(f"{url}/v1", "another", Fitting())
    with pytest.raises(BenchmarkFailed, match="does not answer"):
        await asyncio.wait_for(_played("http://127.0.0.1:9/v1", MODEL, Fitting()), 5)
