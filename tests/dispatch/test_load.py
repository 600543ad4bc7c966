"""What the dispatcher takes from the gateways' words, and from their silence."""

import asyncio

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
    load.hear(_word("b", up=1, other=1))
    assert (load.calls("up"), load.calls("other")) == (3, 1)
    load.hear(_word("a"))
    assert load.calls("up") == 1
    assert not load.busy("third")


def test_a_dead_gateway_counts_no_more_after_a_second() -> None:
    """What it said last is forgotten; the others go on."""
    clock = ManualClock()
    load = InteractiveLoad(clock)
    load.hear(_word("dead", up=5))
    clock.advance(0.9)
    load.hear(_word("alive"))
    assert load.calls("up") == 5
    clock.advance(0.2)
    assert load.calls("up") == 0
    assert not load.busy("up")


def test_silence_means_load() -> None:
    """A dispatcher that hears nobody assumes that people wait."""
    clock = ManualClock()
    load = InteractiveLoad(clock)
    assert load.busy("up")
    load.hear(_word("a"))
    assert not load.busy("up")
    clock.advance(SILENCE_SECONDS + 0.1)
    assert load.busy("up")


def test_who_listens_hears_the_first_call_and_fresh_gaps() -> None:
    """The first call of a quiet target is told once, each mean of gaps as it comes."""
    load = InteractiveLoad(ManualClock())
    busy: list[str] = []
    gaps: list[float] = []
    load.on_busy("up", lambda: busy.append("up"))
    load.on_gap("up", gaps.append)
    load.hear(_word("a", up=1))
    load.hear(_word("a", up=2))
    load.hear(LoadWord("b", {"up": TargetLoad(1, 0.2, 0.03), "other": TargetLoad(1, 0.1, 0.01)}))
    load.hear(_word("a"))
    load.hear(_word("b"))
    load.hear(_word("a", up=1))
    assert busy == ["up", "up"]
    assert gaps == [0.03]


async def test_the_listener_hears_what_a_gateway_publishes(store: StoreClient) -> None:
    """From the channel into the view, over a real server."""
    load = InteractiveLoad(ManualClock())
    channel = LoadChannel(store)
    task = asyncio.create_task(LoadListener(channel, load).run())
    async with asyncio.timeout(5):
        while not load.calls("up"):
            await channel.publish(_word("a", up=3))
            await asyncio.sleep(0.01)
    assert load.calls("up") == 3
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
