"""The same arms against running servers, in real time."""

import asyncio
import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import aiohttp

from gateway.bench.coserve.arms import Arm, Scene, figures_of, follow
from gateway.bench.coserve.figures import Figures, Spread, spread
from gateway.bench.coserve.lane import OfflineLane
from gateway.bench.coserve.live_host import LiveHost
from gateway.bench.coserve.record import CallRecord, Record
from gateway.bench.coserve.rows import Backlog
from gateway.bench.coserve.scenes import ALONE, HEADWAY, NAIVE, OFFLINE, PRIORITY
from gateway.bench.coserve.word import Teller
from gateway.bench.workload.trace import TracedCall, backlog
from gateway.core.clock import SystemClock
from gateway.pacing.shared import Caps
from gateway.pacing.step_time import StepSample

_LOOK_SECONDS = 0.005
_REST_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Target:
    """Servers that share the load; each URL ends in ``/v1``."""

    urls: tuple[str, ...]
    model: str
    api_key: str
    priority: bool = False


class RunClock(SystemClock):
    """Monotonic time from now on."""

    def __init__(self) -> None:
        self._start = super().monotonic()

    def monotonic(self) -> float:
        """Seconds since the run began."""
        return super().monotonic() - self._start


def live_arms(*, flood: int, cap: int, caps: Caps, priority: bool) -> list[Arm]:
    """The arms that running servers can show."""
    headway = Arm(HEADWAY, caps=caps)
    arms = [
        Arm(ALONE),
        Arm(OFFLINE, cap=flood, interactive=False),
        Arm(NAIVE, cap=flood),
        Arm(f"static cap {cap}", cap=cap),
        headway,
    ]
    return [*arms, replace(headway, name=PRIORITY, policy="priority")] if priority else arms


async def run_live(
    arms: Sequence[Arm],
    scene: Scene,
    target: Target,
    slices: Sequence[int],
    said: Callable[[str], None],
) -> tuple[dict[str, dict[str, Spread]], list[StepSample]]:
    """Spreads by arm, and samples of the servers' steps. Between arms the servers come to rest."""
    samples: list[StepSample] = []
    found: dict[str, list[Figures]] = {arm.name: [] for arm in arms}
    for seed in slices:
        alone = offline = None
        for arm in arms:
            record = await _run(arm, scene, target, seed)
            samples += record.samples
            figures = figures_of(record, scene)
            alone = figures if arm.name == ALONE else alone
            offline = figures if arm.name == OFFLINE else offline
            found[arm.name].append(figures.beside(alone, offline))
            said(f"slice {seed}: {arm.name}")
            await asyncio.sleep(_REST_SECONDS)
    return {name: spread(slices) for name, slices in found.items()}, samples


async def _run(arm: Arm, scene: Scene, target: Target, seed: int) -> Record:
    record, clock = Record(), RunClock()
    headers = {"Authorization": f"Bearer {target.api_key}"}
    # A collection of everything would look like a slow server.
    gc.collect()
    gc.freeze()
    async with aiohttp.ClientSession(
        headers=headers,
        connector=aiohttp.TCPConnector(limit=0),
        timeout=aiohttp.ClientTimeout(total=None),
    ) as session:
        by_priority = arm.policy == "priority"
        hosts = [
            LiveHost(session, url, target.model, record, clock, priority=by_priority)
            for url in target.urls
        ]
        rows = Backlog(backlog(scene.offline, seed))
        for host in hosts:
            if (pacer := arm.pacer(host.load, clock)) is not None:
                host.lane = OfflineLane(rows, pacer, host, clock)
                follow(host.load, host.lane, pacer)
        calls = scene.traced(seed) if arm.interactive else ()
        try:
            await _play(hosts, calls, scene, clock, record)
        finally:
            await asyncio.gather(*(host.close() for host in hosts))
    return record


async def _play(
    hosts: Sequence[LiveHost],
    calls: Sequence[TracedCall],
    scene: Scene,
    clock: RunClock,
    record: Record,
) -> None:
    """Make the calls when they come; from the span's start on feed the lanes."""
    teller = Teller([host.load for host in hosts])
    for host in hosts:
        host.on_change = teller.change
    arrival = 0
    while (now := clock.monotonic()) < scene.seconds:
        while arrival < len(calls) and calls[arrival].at <= now:
            call = CallRecord(now, calls[arrival].prompt, calls[arrival].output)
            record.calls.append(call)
            min(hosts, key=lambda host: host.load.calls).take_call(call)
            arrival += 1
        if now >= teller.due():
            teller.tell(now)
            for host in hosts:
                if host.lane is not None and now >= scene.span.start:
                    host.lane.start_ready()
        await asyncio.sleep(_LOOK_SECONDS)
