"""What the dispatcher takes from the gateways' words, and from their silence."""

import asyncio

from gateway.core.clock import SystemClock
from gateway.core.load import TargetLoad
from gateway.dispatch.load import SILENCE_SECONDS, InteractiveLoad, LoadListener
from gateway.store.client import StoreClient
from gateway.store.load import LoadChannel, LoadWord
from tests.support.clock import ManualClock


def _word(gateway: str, **calls: int) -> LoadWord:
    return LoadWord(gateway, {name: TargetLoad(count) for name, count in calls.items()})


def test_gateways_add_up() -> None:
    """The calls at a target are those of all gateways; a new word replaces the gateway's last."""
    load = InteractiveLoad(ManualClock())
    load.hear(_word("a", up=2))
    load.hear(LoadWord("b", {"up": TargetLoad(1, 1), "other": TargetLoad(1)}))
    assert (load.at("up"), load.at("other")) == ((3, 1), (1, 0))
    load.hear(_word("a"))
    assert load.at("up") == (1, 1)
    assert load.at("third") == (0, 0)


def test_a_dead_gateway_counts_no_more_after_a_second() -> None:
    """What it said last is forgotten; the others go on."""
    clock = ManualClock()
    load = InteractiveLoad(clock)
    load.hear(_word("dead", up=5))
    clock.advance(0.9)
    load.hear(_word("alive"))
    assert load.at("up") == (5, 0)
    clock.advance(0.2)
    assert load.at("up") == (0, 0)


def test_silence_is_not_idleness() -> None:
    """A dispatcher that hears nobody knows nothing."""
    clock = ManualClock()
    load = InteractiveLoad(clock)
    assert load.at("up") is None
    load.hear(_word("a"))
    assert load.at("up") == (0, 0)
    clock.advance(SILENCE_SECONDS + 0.1)
    assert load.at("up") is None


def test_who_listens_hears_before_and_now() -> None:
    """Of one target, from each gateway; what a word leaves out is nothing."""
    load = InteractiveLoad(ManualClock())
    heard: list[tuple[TargetLoad, TargetLoad]] = []
    load.listen("up", lambda *loads: heard.append(loads))
    load.hear(_word("a", up=1))
    load.hear(LoadWord("b", {"up": TargetLoad(1, 0, 0.2, 0.03), "other": TargetLoad(9)}))
    load.hear(_word("a"))
    load.hear(_word("a"))
    assert heard == [
        (TargetLoad(), TargetLoad(1)),
        (TargetLoad(), TargetLoad(1, 0, 0.2, 0.03)),
        (TargetLoad(1), TargetLoad()),
    ]


async def test_the_listener_hears_what_a_gateway_publishes(store: StoreClient) -> None:
    """From the channel into the view, over a real server."""
    load = InteractiveLoad(ManualClock())
    channel = LoadChannel(store)
    task = asyncio.create_task(LoadListener(channel, load).run())
    async with asyncio.timeout(5):
        while not load.at("up"):
            await channel.publish(_word("a", up=3))
            await asyncio.sleep(0.01)
    assert load.at("up") == (3, 0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def test_silence_is_told() -> None:
    """Whoever listens hears that a dead gateway's calls are gone, once, and a second after it."""
    clock = ManualClock()
    load = InteractiveLoad(clock)
    heard: list[tuple[TargetLoad, TargetLoad]] = []
    assert load.forget() > SILENCE_SECONDS
    load.hear(_word("dead", up=5))
    load.listen("up", lambda *loads: heard.append(loads))
    clock.advance(0.4)
    load.hear(_word("alive", up=1))
    heard.clear()
    wait = load.forget()
    assert 0.6 < wait < 0.62
    assert not heard
    clock.advance(wait)
    assert 0.35 < load.forget() < 0.42
    assert heard == [(TargetLoad(5), TargetLoad())]
    assert load.at("up") == (1, 0)


async def test_a_listener_forgets_by_itself(store: StoreClient) -> None:
    """In real time, without anybody who asks."""
    load = InteractiveLoad(SystemClock())
    load.hear(_word("dead", up=5))
    gone = asyncio.Event()
    load.listen("up", lambda *_: gone.set())
    task = asyncio.create_task(LoadListener(LoadChannel(store), load).run())
    async with asyncio.timeout(3 * SILENCE_SECONDS):
        await gone.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
