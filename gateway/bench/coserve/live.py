"""The same arms against running servers, in real time."""

import asyncio
import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import aiohttp

from gateway.bench.coserve.arms import Arm, Scene, figures_of
from gateway.bench.coserve.batch_arm import Gateway, OfflineBatch, tokens_of
from gateway.bench.coserve.figures import Figures, Spread, spread
from gateway.bench.coserve.fitting import AS_TOLD, Fitting, template_tokens
from gateway.bench.coserve.lane import OfflineLane
from gateway.bench.coserve.live_host import Address, LiveHost
from gateway.bench.coserve.record import CallRecord, Record
from gateway.bench.coserve.rows import Backlog
from gateway.bench.coserve.scenes import ALONE, GATEWAY, HEADWAY, NAIVE, OFFLINE, PRIORITY
from gateway.bench.coserve.word import Teller
from gateway.bench.workload.trace import TracedCall, backlog
from gateway.core.clock import SystemClock
from gateway.core.errors import BenchmarkFailed
from gateway.pacing.shared import Caps
from gateway.pacing.step_time import StepSample

_LOOK_SECONDS = 0.005
_REST_SECONDS = 2.0
# Servers close a connection that was idle for 5 s, at times just as a call is sent on it.
_IDLE_SECONDS = 2.0
# Rows a second of an engine that the batch has at hand: more than any will do.
_ROWS = 12


@dataclass(frozen=True, slots=True)
class Target:
    """Servers that share the load; each URL ends in ``/v1``.

    They put ``template`` tokens around a prompt.
    """

    urls: tuple[str, ...]
    model: str
    api_key: str
    priority: bool = False
    gateway: Gateway | None = None
    template: int = 0


@dataclass(frozen=True, slots=True)
class Played:
    """Spreads by arm, samples of the servers' steps, and the scene as it was measured."""

    arms: dict[str, dict[str, Spread]]
    samples: list[StepSample]
    scene: Scene


class RunClock(SystemClock):
    """Monotonic time from now on."""

    def __init__(self) -> None:
        self._start = super().monotonic()

    def monotonic(self) -> float:
        """Seconds since the run began."""
        return super().monotonic() - self._start


def live_arms(target: Target, *, flood: int, cap: int, caps: Caps) -> list[Arm]:
    """The arms that running servers can show."""
    headway = Arm(HEADWAY, caps=caps)
    arms = [
        Arm(ALONE),
        Arm(OFFLINE, cap=flood, interactive=False),
        Arm(NAIVE, cap=flood),
        Arm(f"static cap {cap}", cap=cap),
        headway,
    ]
    if target.priority:
        arms.append(replace(headway, name=PRIORITY, policy="priority"))
    return arms if target.gateway is None else [*arms, Arm(GATEWAY, gateway=True)]


async def run_live(
    arms: Sequence[Arm],
    scene: Scene,
    target: Target,
    slices: Sequence[int],
    said: Callable[[str], None],
    fitting: Fitting = AS_TOLD,
) -> Played:
    """Run the arms on each slice, offline work alone first. Between arms the servers come to rest.

    Raises BenchmarkFailed when a server does not answer, or an arm comes to nothing.
    """
    samples: list[StepSample] = []
    target = replace(target, template=await _template(target))
    scene = scene.with_prompts_above(target.template)
    found: dict[str, list[Figures]] = {arm.name: [] for arm in arms}
    for seed in slices:
        alone = offline = None
        for arm in sorted(arms, key=lambda arm: arm.interactive):
            record = await _run(arm, scene, target, seed)
            _must_have_run(arm, record)
            samples += record.samples
            if arm.name == ALONE and not found[ALONE]:
                scene = fitting.after_alone(scene, record)
            figures = figures_of(record, scene)
            if arm.name == OFFLINE and not found[OFFLINE]:
                scene = fitting.after_offline(scene, figures)
            alone = figures if arm.name == ALONE else alone
            offline = figures if arm.name == OFFLINE else offline
            found[arm.name].append(figures.beside(alone, offline))
            said(f"slice {seed}: {arm.name}")
            await asyncio.sleep(_REST_SECONDS)
    return Played({name: spread(slices) for name, slices in found.items()}, samples, scene)


async def _template(target: Target) -> int:
    async with aiohttp.ClientSession(
        headers={"Authorization": f"Bearer {target.api_key}"}
    ) as session:
        asked = [template_tokens(session, url, target.model) for url in target.urls]
        return max(await asyncio.gather(*asked))


def _must_have_run(arm: Arm, record: Record) -> None:
    """Alone, that is: beside a flood no answer in time is a finding."""
    if arm.name == ALONE and not any(call.tokens for call in record.calls):
        raise BenchmarkFailed(f"{arm.name}: no call was answered")
    if not arm.interactive and not record.prompt_tokens:
        raise BenchmarkFailed(f"{arm.name}: no row was answered")


async def _run(arm: Arm, scene: Scene, target: Target, seed: int) -> Record:
    gateway = target.gateway if arm.gateway else None
    key = target.api_key if gateway is None else gateway.api_key
    # A collection of everything would look like a slow server.
    gc.collect()
    gc.freeze()
    record = Record()
    async with aiohttp.ClientSession(
        headers={"Authorization": f"Bearer {key}"},
        connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_IDLE_SECONDS),
        timeout=aiohttp.ClientTimeout(total=None),
    ) as session:
        if gateway is None:
            await _direct(session, arm, scene, target, seed, record)
        else:
            await _through(session, target, scene, seed, record)
    return record


async def _direct(
    session: aiohttp.ClientSession,
    arm: Arm,
    scene: Scene,
    target: Target,
    seed: int,
    record: Record,
) -> None:
    """Calls and rows to the servers themselves; a lane of ours in front of each."""
    clock, priority = RunClock(), arm.policy == "priority"
    addresses = [Address(url, target.model, target.template, priority) for url in target.urls]
    hosts = [LiveHost(session, address, record, clock) for address in addresses]
    rows = Backlog(backlog(scene.offline, seed))
    for host in hosts:
        if (pacer := arm.pacer(host.load, clock)) is not None:
            host.lane = OfflineLane(rows, pacer, host, clock)
            host.load.listener = host.lane.hear
    calls = scene.traced(seed) if arm.interactive else ()
    try:
        await _play(hosts, calls, scene, clock, record)
    finally:
        await asyncio.gather(*(host.close() for host in hosts))


async def _through(
    session: aiohttp.ClientSession,
    target: Target,
    scene: Scene,
    seed: int,
    record: Record,
) -> None:
    """Calls and a batch by way of the gateway; what it does offline is counted by the engines."""
    gateway, engines = target.gateway, target.urls
    assert gateway is not None
    batch = OfflineBatch(session, gateway, target.template)
    await batch.upload(backlog(scene.offline, seed), round(_ROWS * scene.seconds * len(engines)))
    before = await tokens_of(session, engines)
    clock = RunClock()
    host = LiveHost(session, Address(gateway.url, gateway.model, target.template), record, clock)
    starting = asyncio.create_task(_later(batch, scene.span.start))
    try:
        await _play([host], scene.traced(seed), scene, clock, record)
        after = await tokens_of(session, engines)
    finally:
        starting.cancel()
        await batch.stop()
        await host.close()
    spoken = [call for call in record.calls if call.tokens]
    record.prompt_tokens = int(after[0] - before[0]) - sum(call.prompt for call in spoken)
    record.output_tokens = int(after[1] - before[1]) - sum(call.tokens for call in spoken)


async def _later(batch: OfflineBatch, seconds: float) -> None:
    await asyncio.sleep(seconds)
    await batch.start()


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
