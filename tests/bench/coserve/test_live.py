"""The arms on a server that runs."""

import pytest

from gateway.bench.coserve.arms import Arm, Scene
from gateway.bench.coserve.batch_arm import Gateway
from gateway.bench.coserve.live import Target, live_arms, run_live
from gateway.bench.coserve.scenes import ALONE, GATEWAY, HEADWAY, NAIVE, OFFLINE, PRIORITY
from gateway.bench.workload.trace import Lengths
from gateway.core.errors import BenchmarkFailed
from gateway.pacing.shared import Caps
from gateway.simulator.profile import PROFILES
from tests.support.scripts import error
from tests.support.simulated import MODEL, engine_process
from tests.support.upstream import ScriptedUpstream


async def test_people_are_protected_in_real_time() -> None:
    """Headway's arm against the naive one, seconds each, on a simulated engine."""
    arms = [Arm(NAIVE, cap=64), Arm(HEADWAY, caps=Caps())]
    scene = Scene(
        PROFILES["a100-8b"],
        engines=1,
        rate=3.0,
        seconds=8.0,
        chat=Lengths(400, 0.3, 20, 0.3),
        offline=Lengths(800, 0.3, 300, 0.3),
        lead=1.0,
        tail=2.0,
    )
    async with engine_process("--profile", "a100-8b", "--model", MODEL, "--scale", "2") as (url, _):
        said: list[str] = []
        target = Target((f"{url}/v1",), MODEL, "none")
        played = await run_live(arms, scene, target, (1,), said.append)
    found, samples = played.arms, played.samples
    assert said == [f"slice 1: {arm.name}" for arm in arms]
    assert found[HEADWAY]["offline_tokens"].mean > 0
    assert found[NAIVE]["ttft_p99"].mean > 2 * found[HEADWAY]["ttft_p99"].mean
    assert found[HEADWAY]["calls"].mean > 5
    assert any(0.004 < sample.seconds < 0.1 for sample in samples)


def test_priorities_are_an_arm_of_their_own() -> None:
    """Where the server takes them."""
    for priority, gateway in ((False, None), (True, Gateway("http://x/v1", "m", "k"))):
        target = Target(("http://x/v1",), "m", "none", priority, gateway)
        names = [arm.name for arm in live_arms(target, flood=1, cap=1, caps=Caps())]
        assert (PRIORITY in names) == priority
        assert (GATEWAY in names) == (gateway is not None)


async def test_calls_that_fail_are_a_finding_but_not_when_alone(upstream: ScriptedUpstream) -> None:
    """Beside a flood an arm may come to nothing; alone it is said."""
    upstream.on(lambda seen: b'"stream":' in seen.body.replace(b" ", b""), error(500))
    scene = Scene(PROFILES["a100-8b"], engines=1, rate=9.0, seconds=1.0, lead=0.1, tail=0.1)
    target = Target((upstream.url,), "m", "none")

    def said(text: str) -> None:
        del text

    played = await run_live([Arm(NAIVE, cap=1)], scene, target, (1,), said)
    figures = played.arms[NAIVE]
    assert figures["failed"].mean == figures["calls"].mean > 0
    assert figures["slo"].mean == 0
    with pytest.raises(BenchmarkFailed, match="no call was answered"):
        await run_live([Arm(ALONE)], scene, target, (1,), said)
    with pytest.raises(BenchmarkFailed, match="no row was answered"):
        await run_live([Arm(OFFLINE, cap=1, interactive=False)], scene, target, (1,), said)
