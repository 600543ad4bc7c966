"""Gateways tell each other what to leave alone."""

import asyncio

from gateway.core.clock import SystemClock
from gateway.core.errors import UpstreamThrottled
from gateway.policy.target import TargetPolicy
from gateway.routing.cooldowns import SharedCooldowns
from gateway.routing.state import TargetState
from gateway.store.client import StoreClient
from gateway.store.cooldowns import CHANNEL, Cooldown, CooldownChannel
from tests.support.routes import a_target
from tests.support.valkey import somebody_listens

CLOCK = SystemClock()
TOLD = UpstreamThrottled("x", target="t", status=429, retry_after=30)


def a_gateway(name: str, store: StoreClient) -> tuple[TargetState, SharedCooldowns]:
    """The state of target ``t`` at one gateway, and what keeps it."""
    state = TargetState("t", TargetPolicy.model_validate(a_target(api_keys=["k1", "k2"])))
    return state, SharedCooldowns(name, {"t": state}, CooldownChannel(store), CLOCK)


async def test_what_one_is_told_the_other_heeds(store: StoreClient) -> None:
    """The key at that place is left alone for the rest of the time; the teller does not hear."""
    one, telling = a_gateway("g1", store)
    other, hearing = a_gateway("g2", store)
    listening = asyncio.create_task(hearing.hear())
    await somebody_listens(store, CHANNEL)
    one.credentials.refused(0, TOLD, CLOCK.monotonic())
    await telling.tell()
    async with asyncio.timeout(5):
        while other.credentials.pick(CLOCK.monotonic()) != 1:  # noqa: ASYNC110 - a state elsewhere
            await asyncio.sleep(0.01)
    one.credentials.refused(1, TOLD, CLOCK.monotonic())
    await telling.tell()
    async with asyncio.timeout(5):
        while not other.wait(CLOCK.monotonic()):  # noqa: ASYNC110 - a state elsewhere
            await asyncio.sleep(0.01)
    assert 25 < other.wait(CLOCK.monotonic()) <= 30
    listening.cancel()


async def test_odd_words_are_ignored(store: StoreClient) -> None:
    """Of targets, keys and gateways that are none of ours, and from ourselves."""
    state, hearing = a_gateway("g2", store)
    listening = asyncio.create_task(hearing.hear())
    await somebody_listens(store, CHANNEL)
    channel = CooldownChannel(store)
    for word in (
        Cooldown("g1", "gone", 0, 9),
        Cooldown("g1", "t", 7, 9),
        Cooldown("g1", "t", -1, 9),
        Cooldown("g2", "t", 0, 9),
    ):
        await channel.publish(word)
    await channel.publish(Cooldown("g1", "t", 1, 9))
    await asyncio.sleep(0.2)
    assert state.credentials.pick(CLOCK.monotonic()) == 0
    listening.cancel()


async def test_what_is_over_is_not_told(store: StoreClient) -> None:
    """A pause that ended before it could be told is nobody's business."""
    state, telling = a_gateway("g1", store)
    short = UpstreamThrottled("x", target="t", status=429, retry_after=0.001)
    state.credentials.refused(0, short, CLOCK.monotonic())
    await asyncio.sleep(0.01)
    words = CooldownChannel(store).listen()
    first = asyncio.create_task(anext(words))
    await somebody_listens(store, CHANNEL)
    await telling.tell()
    await CooldownChannel(store).publish(Cooldown("g9", "t", 0, 1))
    assert (await first).gateway == "g9"
    await words.aclose()
