"""Targets are looked after."""

import asyncio
from typing import Any

from gateway.core.errors import UpstreamRefused
from gateway.core.targets import EngineLoad
from gateway.policy.model import Policy
from gateway.routing.state import TargetState
from gateway.routing.target_monitor import TargetMonitor
from tests.support.routes import a_target

Pages = dict[tuple[str, str], tuple[int, bytes]]


def looked_after(pages: Pages, **targets: Any) -> tuple[TargetMonitor, dict[str, TargetState]]:
    """TargetMonitor over ``targets``; what is on none of the pages is refused."""
    policy = Policy.model_validate({"targets": targets})
    states = {name: TargetState(name, target) for name, target in policy.targets.items()}

    async def look(name: str, path: str, seconds: float) -> tuple[int, bytes]:
        if (name, path) not in pages:
            raise UpstreamRefused("x", target=name)
        return pages[name, path]

    return TargetMonitor(policy, states, look, every=0.01), states


async def test_two_bad_answers_take_a_target_out() -> None:
    """One is an accident; any status but 2xx is bad; a good one puts it back at once."""
    pages: Pages = {("t", "/up"): (503, b"")}
    monitor, states = looked_after(pages, t=a_target(health="/up"))
    seen = []
    for page in ((503, b""), (200, b""), (503, b""), None, (200, b"")):
        pages.clear()
        if page is not None:
            pages["t", "/up"] = page
        await monitor.visit("t")
        seen.append(states["t"].down)
    assert seen == [False, False, False, True, False]


async def test_engines_tell_their_load() -> None:
    """Of those that do not, or no more, nothing is assumed; their health is not touched."""
    pages: Pages = {("t", "/metrics"): (200, b"vllm:num_requests_running 3\n")}
    monitor, states = looked_after(pages, t=a_target(kind="vllm"))
    heard: list[tuple[str, EngineLoad]] = []
    monitor.listeners.append(lambda *told: heard.append(told))
    await monitor.visit("t")
    assert states["t"].load == 3
    assert heard == [("t", EngineLoad(3))]
    pages.clear()
    for _ in range(3):
        await monitor.visit("t")
    assert states["t"].load == 0
    assert states["t"].engine is None
    assert not states["t"].down


async def test_each_target_has_its_own_round() -> None:
    """One whose pages hang does not keep the others waiting; providers are not asked."""
    asked = []
    targets = {"slow": a_target(health="/up"), "well": a_target(health="/up"), "no": a_target()}
    policy = Policy.model_validate({"targets": targets})
    states = {name: TargetState(name, target) for name, target in policy.targets.items()}

    async def look(name: str, path: str, seconds: float) -> tuple[int, bytes]:
        asked.append(name)
        if name == "slow":
            await asyncio.Event().wait()
        return 200, b""

    monitor = asyncio.create_task(TargetMonitor(policy, states, look, every=0.001).run())
    while asked.count("well") < 5:  # noqa: ASYNC110 - nothing tells it
        await asyncio.sleep(0.001)
    monitor.cancel()
    assert asked.count("slow") == 1
    assert "no" not in asked
