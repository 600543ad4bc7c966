"""Several dispatchers of one target, over a real server: together they stay within its caps."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

from gateway.core.clock import SystemClock
from gateway.core.load import LaneLoad, Turn
from gateway.core.usage import Usage
from gateway.dispatch.fleet import Fleet, FleetTalk
from gateway.pacing.shared import Caps, SharedEngine, Waiting
from gateway.pacing.window import FixedWindow, Pacer
from gateway.store.client import StoreClient, connect
from gateway.store.fleet import CHANNEL, FleetChannel, FleetWord
from tests.support.clock import ManualClock
from tests.support.rig import Rig
from tests.support.rows import lane_of


class _Engine:
    """Rows of all dispatchers, each a moment at the target."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.running: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()
        self.peak = 0

    def member(self, name: str, path: Path, store: StoreClient, *, gate: bool) -> "_Member":
        """A dispatcher with a cap of six rows, or with a gate of one prompt."""
        fleet = Fleet(name, SystemClock())
        pacer: Pacer = FixedWindow(6, fleet.at("up"))
        if gate:
            caps = Caps(floor=32, start=32, ceiling=32)
            pacer = SharedEngine(caps, lambda: Waiting(1, 0), SystemClock(), share=fleet.at("up"))

        async def play(_: int) -> Usage:
            self.calls[name] += 1
            self.running[name] += 1
            self.peak = max(self.peak, self.running.total())
            try:
                await asyncio.sleep(self.seconds)
            finally:
                self.running[name] -= 1
            return Usage(1, 1)

        rig = Rig(path, store, play, pacer=pacer, name=name)
        fleet.join(rig.lanes)
        return _Member(rig, fleet, FleetTalk(FleetChannel(store), fleet))


class _Member:
    def __init__(self, rig: Rig, fleet: Fleet, talk: FleetTalk) -> None:
        self.rig = rig
        self.fleet = fleet
        self.talk = talk

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with self.rig.running(self.talk):
            async with asyncio.timeout(5):
                while not self.fleet.open:  # noqa: ASYNC110 - a state elsewhere
                    await asyncio.sleep(0.01)
            yield


async def test_two_have_one_gate_together(tmp_path: Path, store: StoreClient) -> None:
    """Never two prompts at once while somebody waits; both make progress."""
    engine = _Engine(0.01)
    first = engine.member("a", tmp_path, store, gate=True)
    second = engine.member("b", tmp_path, store, gate=True)
    async with first.running(), second.running():
        await first.rig.add(150)
        view = await first.rig.until_done(150, 20)
    assert view.ok == 150
    assert engine.peak == 1
    assert min(engine.calls["a"], engine.calls["b"]) >= 30


async def test_two_have_one_window_together(tmp_path: Path, store: StoreClient) -> None:
    """Three rows each, also while the second one comes."""
    engine = _Engine(0.05)
    first = engine.member("a", tmp_path, store, gate=False)
    second = engine.member("b", tmp_path, store, gate=False)
    await first.rig.add(150)
    async with first.running():
        await first.rig.until_done(20)
        assert engine.peak == 6
        async with second.running():
            view = await first.rig.until_done(150, 20)
    assert view.ok == 150
    assert engine.peak == 6
    assert engine.calls["b"] >= 30


async def test_alone_it_begins_at_once_and_has_all(tmp_path: Path, store: StoreClient) -> None:
    """No wait for others, no word too many."""
    engine = _Engine(0.05)
    member = engine.member("a", tmp_path, store, gate=False)
    began = asyncio.get_running_loop().time()
    async with member.running():
        assert asyncio.get_running_loop().time() - began < 0.2
        await member.rig.add(12)
        await member.rig.until_done(12)
    assert engine.peak == 6


async def test_the_part_of_one_who_is_silent_is_free(tmp_path: Path, store: StoreClient) -> None:
    """After a second, whatever it held and whosever turn it was."""
    engine = _Engine(0.02)
    member = engine.member("b", tmp_path, store, gate=True)
    dead = FleetWord("a", {"up": LaneLoad(6, 1, wishes=True)}, {"up": Turn(10**6, "a")})
    async with member.running():
        await member.rig.add(5)
        member.fleet.hear(dead)
        silent = asyncio.get_running_loop().time()
        await asyncio.sleep(0.5)
        held = engine.calls["b"]
        await member.rig.until_done(5)
    assert held <= 1
    assert 0.9 < asyncio.get_running_loop().time() - silent < 5


def test_while_we_hear_nothing_at_all_nobody_is_gone() -> None:
    """The silence is ours: when words arrive again, the others have a second to be heard."""
    clock = ManualClock()
    fleet = Fleet("b", clock)
    part = fleet.at("up")
    lane = lane_of(clock)
    fleet.join({"up": lane})
    fleet.hear(FleetWord("a", {"up": LaneLoad(3)}, {}))
    clock.advance(5)
    fleet.look()
    assert part.beside() == 3
    fleet.hear(FleetWord("b", {}, {}))
    clock.advance(0.9)
    fleet.hear(FleetWord("b", {}, {}))
    fleet.look()
    assert part.beside() == 3
    clock.advance(0.9)
    fleet.hear(FleetWord("b", {}, {}))
    fleet.look()
    assert part.beside() == 0


async def test_without_a_server_nothing_begins(store: StoreClient) -> None:
    """It is tried again until it is known who is there; a lost connection is made again."""
    away = Fleet("a", SystemClock())
    talk = asyncio.create_task(FleetTalk(FleetChannel(connect("redis://127.0.0.1:1")), away).run())
    await asyncio.sleep(0.3)
    assert not away.open
    talk.cancel()
    await asyncio.gather(talk, return_exceptions=True)
    fleet = Fleet("b", SystemClock())
    fleet.at("up")
    fleet.join({"up": lane_of(SystemClock())})
    talk = asyncio.create_task(FleetTalk(FleetChannel(store), fleet).run())
    async with asyncio.timeout(10):
        await _heard(store, fleet, LaneLoad(1))
        await store.execute_command("CLIENT", "KILL", "TYPE", "PUBSUB")
        await _heard(store, fleet, LaneLoad(2))
    talk.cancel()
    await asyncio.gather(talk, return_exceptions=True)


async def _heard(store: StoreClient, fleet: Fleet, load: LaneLoad) -> None:
    while fleet.at("up").beside() != load.running:
        await FleetChannel(store).publish(FleetWord("a", {"up": load}, {}))
        await store.publish(CHANNEL, b'["a", {"up": 1}, {}]')
        await asyncio.sleep(0.02)
