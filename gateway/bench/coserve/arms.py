"""Arms: who is on the engines, and what holds offline work back."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from gateway.bench.coserve.figures import Figures, Span
from gateway.bench.coserve.host import EngineHost
from gateway.bench.coserve.lane import OfflineLane
from gateway.bench.coserve.record import Record
from gateway.bench.coserve.rows import Backlog
from gateway.bench.coserve.slo import USUAL, Slo
from gateway.bench.coserve.virtual import Change, VirtualClock, VirtualRun
from gateway.bench.coserve.word import EngineLoad
from gateway.bench.workload.trace import CHAT, SUMMARIES, Lengths, TracedCall, arrivals, backlog
from gateway.core.clock import Clock
from gateway.pacing.shared import Caps, SharedEngine
from gateway.pacing.window import FixedWindow, Pacer
from gateway.simulator.engine import Engine
from gateway.simulator.profile import EngineProfile

#: Offline work begins after so many seconds; calls of the last ones are not judged.
LEAD_SECONDS = 20.0
TAIL_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class Arm:
    """``cap`` rows in flight at an engine, or what the dispatcher's pacer makes of ``caps``.

    ``policy`` is that of the engines; ``apart``: the first half of them serves interactive calls,
    the rest offline rows. Without ``interactive`` nobody calls, without both caps no row runs.
    ``gateway``: both lanes go through a running gateway.
    """

    name: str
    cap: int | None = None
    caps: Caps | None = None
    policy: str = "fcfs"
    apart: bool = False
    interactive: bool = True
    gateway: bool = False

    def pacer(self, load: EngineLoad, clock: Clock) -> Pacer | None:
        """What feeds the lane of an engine with this interactive load."""
        if self.caps is not None:
            return SharedEngine(self.caps, lambda: load.waiting, clock)
        return None if self.cap is None else FixedWindow(self.cap)


@dataclass(frozen=True, slots=True)
class Scene:
    """The load: ``rate`` calls a second over all engines, beside a backlog without end.

    ``traces`` are the calls of each slice, if they are not drawn; ``changes`` happen to the engines
    under way; offline work begins after ``lead`` seconds, calls of the last ``tail`` do not count.
    ``absent`` engines are not up until a change says so.
    """

    profile: EngineProfile
    engines: int = 2
    rate: float = 5.04
    cv: float = 1.0
    seconds: float = 600.0
    chat: Lengths = CHAT
    offline: Lengths = SUMMARIES
    lead: float = LEAD_SECONDS
    tail: float = TAIL_SECONDS
    traces: tuple[tuple[TracedCall, ...], ...] = ()
    changes: tuple[Change, ...] = ()
    absent: int = 0
    slo: Slo = USUAL

    @property
    def span(self) -> Span:
        """What is measured of a run."""
        return Span(self.lead, self.seconds - self.tail, self.seconds)

    def traced(self, seed: int) -> Sequence[TracedCall]:
        """The interactive calls of a slice; slices count from 1."""
        if self.traces:
            return self.traces[seed - 1]
        return arrivals(self.rate, self.seconds, self.chat, seed, cv=self.cv)

    def with_prompts_above(self, tokens: int) -> "Scene":
        """No drawn prompt is so short: a server adds as much to each."""
        chat = replace(self.chat, shortest=tokens + 1)
        return replace(self, chat=chat, offline=replace(self.offline, shortest=tokens + 1))


def run_arm(arm: Arm, scene: Scene, seed: int, rows: Backlog | None = None) -> Record:
    """One arm on one slice, in virtual time."""
    record, clock = Record(), VirtualClock()
    hosts = [EngineHost(Engine(scene.profile, arm.policy), record) for _ in range(scene.engines)]
    for host in hosts[: scene.absent]:
        host.up = False
    half = max(1, scene.engines // 2)
    serving, feeding = (hosts[:half], hosts[half:]) if arm.apart else (hosts, hosts)
    shared = rows or Backlog(backlog(scene.offline, seed))
    for host in feeding:
        if (pacer := arm.pacer(host.load, clock)) is not None:
            host.lane = OfflineLane(shared, pacer, host, clock)
            host.load.listener = host.lane.hear
    calls = scene.traced(seed) if arm.interactive else ()
    run = VirtualRun(hosts, serving, calls, clock, record, changes=scene.changes)
    run.run(scene.seconds, offline_from=scene.lead, until_done=rows is not None)
    return record


def figures_of(record: Record, scene: Scene) -> Figures:
    """A run in figures."""
    profile, span = scene.profile, scene.span
    price = profile.price * scene.engines
    if not record.samples:
        return Figures.of(record, span, price=price, work=math.nan, slo=scene.slo)
    tokens = sum(s.seconds and (s.rows + s.prefill) / s.seconds for s in record.samples)
    work = profile.b * tokens / len(record.samples) / 1000
    busy = record.busy / (scene.engines * scene.seconds)
    return Figures.of(record, span, price=price, work=work * busy, slo=scene.slo)
