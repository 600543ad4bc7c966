"""Places, and the line in front of them."""

import asyncio

import pytest

from gateway.core.clock import SystemClock
from gateway.core.errors import QueueFull
from gateway.core.lanes import Lane
from gateway.policy.model import Policy
from gateway.routing.admission import LONGEST_RETRY_AFTER, Admission
from tests.support.clock import ManualClock

FAST = Lane.INTERACTIVE


def admission(**limits: object) -> Admission:
    """One target ``t`` with these interactive limits."""
    lanes = {"interactive": limits, "elastic": {"max_in_flight": 1}}
    target = {"base_url": "http://x/v1", "models": ["m"], "lanes": lanes}
    return Admission(Policy.model_validate({"targets": {"t": target}}), SystemClock())


async def test_places_go_in_order_of_arrival() -> None:
    """Who came first is served first."""
    gates = admission(max_in_flight=1)
    first = await gates.enter("t", FAST)
    order: list[int] = []

    async def one(number: int) -> None:
        slot = await gates.enter("t", FAST)
        order.append(number)
        slot.release()

    tasks = []
    for number in range(5):
        tasks.append(asyncio.create_task(one(number)))
        await asyncio.sleep(0)
    assert gates.waiting("t", FAST) == 5
    first.release()
    await asyncio.gather(*tasks)
    assert order == [0, 1, 2, 3, 4]
    assert gates.running("t", FAST) == 0


async def test_releasing_twice_frees_one_place() -> None:
    """A slot given back twice does not free somebody else's place."""
    gates = admission(max_in_flight=2)
    first = await gates.enter("t", FAST)
    await gates.enter("t", FAST)
    first.release()
    first.release()
    assert gates.running("t", FAST) == 1


async def test_lanes_do_not_share_places() -> None:
    """A full lane does not hold up the other."""
    gates = admission(max_in_flight=1)
    await gates.enter("t", FAST)
    await gates.enter("t", Lane.ELASTIC)
    assert gates.running("t", Lane.ELASTIC) == 1


async def test_a_full_queue_refuses_at_once() -> None:
    """Beyond max_queue nobody waits; the advice is between 1 and 60 seconds."""
    gates = admission(max_in_flight=1, max_queue=0)
    await gates.enter("t", FAST)
    with pytest.raises(QueueFull) as caught:
        await gates.enter("t", FAST)
    assert 1 <= caught.value.retry_after <= LONGEST_RETRY_AFTER


async def test_a_wait_has_an_end() -> None:
    """After max_wait the caller is refused and is no longer in line."""
    gates = admission(max_in_flight=1, max_wait=0.01)
    slot = await gates.enter("t", FAST)
    with pytest.raises(QueueFull):
        await gates.enter("t", FAST)
    assert gates.waiting("t", FAST) == 0
    slot.release()
    assert gates.running("t", FAST) == 0


async def test_lim_04_cancelled_waiters_leak_nothing() -> None:
    """LIM-04: cancelling at any moment, even as the place is handed over, loses no place."""
    gates = admission(max_in_flight=2, max_queue=500)

    async def one() -> None:
        slot = await gates.enter("t", FAST)
        try:
            await asyncio.sleep(0)
        finally:
            slot.release()

    tasks = [asyncio.create_task(one()) for _ in range(200)]
    for turn, task in enumerate(tasks):
        if turn % 3 == 0:
            task.cancel()
        if turn % 2 == 0:
            await asyncio.sleep(0)
    await asyncio.gather(*tasks, return_exceptions=True)
    assert (gates.running("t", FAST), gates.waiting("t", FAST)) == (0, 0)


async def test_cancelled_with_the_place_in_hand() -> None:
    """A waiter that is cancelled after its place was granted passes it on."""
    gates = admission(max_in_flight=1)
    slot = await gates.enter("t", FAST)
    waiting = asyncio.create_task(gates.enter("t", FAST))
    behind = asyncio.create_task(gates.enter("t", FAST))
    await asyncio.sleep(0)
    slot.release()
    waiting.cancel()
    (await behind).release()
    assert gates.running("t", FAST) == 0


async def test_streams_without_a_token_are_counted() -> None:
    """From going out to the first token or the end, once, and each change is told."""
    gates = admission(max_in_flight=3)
    seen, left = await gates.enter("t", FAST), await gates.enter("t", FAST)
    seen.prefill_begins()
    left.prefill_begins()
    assert gates.prefilling("t", FAST) == 2
    gates.changed.clear()
    seen.first_token()
    seen.first_token()
    assert gates.changed.is_set()
    assert gates.prefilling("t", FAST) == 1
    left.release()
    seen.release()
    seen.first_token()
    assert gates.prefilling("t", FAST) == 0


async def test_lim_04_waiting_at_several_targets_leaks_nothing() -> None:
    """LIM-04: calls that wait for the first of several places, and leave at any moment."""
    target = {"base_url": "http://x/v1", "models": ["m"]}
    lanes = {"interactive": {"max_in_flight": 2, "max_queue": 500, "max_wait": 5}}
    rules = Policy.model_validate({"targets": {n: {**target, "lanes": lanes} for n in "abc"}})
    gates = Admission(rules, SystemClock())
    every = list(gates.gates(FAST).values())
    served = 0

    async def one(turn: int) -> None:
        nonlocal served
        some = every[turn % 3 :] if turn % 5 else every
        free = [gate for gate in some if gate.free]
        slot = free[0].take() if free else (await gates.wait_for_place(some))[1]
        try:
            assert all(gate.running <= 2 for gate in every)
            await asyncio.sleep(0)
            served += 1
        finally:
            slot.release()

    tasks = [asyncio.create_task(one(turn)) for turn in range(300)]
    for turn, task in enumerate(tasks):
        if turn % 3 == 0:
            task.cancel()
        if turn % 2 == 0:
            await asyncio.sleep(0)
    await asyncio.gather(*tasks, return_exceptions=True)
    assert served >= 200
    assert [(gate.running, gate.state.running, len(gate.waiting)) for gate in every] == [
        (0, 0, 0)
    ] * 3


async def test_one_place_of_several_is_taken() -> None:
    """Places that come free at the same moment go to different calls."""
    target = {"base_url": "http://x/v1", "models": ["m"]}
    lanes = {"interactive": {"max_in_flight": 1}}
    rules = Policy.model_validate({"targets": {n: {**target, "lanes": lanes} for n in "ab"}})
    gates = Admission(rules, SystemClock())
    every = list(gates.gates(FAST).values())
    held = [gate.take() for gate in every]
    waiting = [asyncio.create_task(gates.wait_for_place(every)) for _ in range(2)]
    await asyncio.sleep(0)
    for slot in held:
        slot.release()
    got = await asyncio.gather(*waiting)
    assert [gate for gate, _ in got] == every
    for _, slot in got:
        slot.release()
    assert [gate.running for gate in every] == [0, 0]


async def test_the_advice_is_the_real_pace() -> None:
    """Not how long calls hold their places, but how often one came free while others waited."""
    target = {"base_url": "http://x/v1", "models": ["m"]}
    lanes = {"interactive": {"max_in_flight": 1}}
    clock = ManualClock()
    rules = Policy.model_validate({"targets": {"t": {**target, "lanes": lanes}}})
    gates = Admission(rules, clock)
    (gate,) = gates.gates(FAST).values()
    slot = gate.take()
    waiting = [asyncio.create_task(gates.enter("t", FAST)) for _ in range(6)]
    await asyncio.sleep(0)
    for number in range(4):
        clock.advance(4)
        slot.release()
        slot = await waiting[number]
    assert gate.retry_after() == 12
    for task in waiting[4:]:
        task.cancel()
    await asyncio.gather(*waiting[4:], return_exceptions=True)
    assert gate.retry_after() == 4


async def test_a_target_knows_who_waits_for_a_first_token() -> None:
    """Of all lanes together, until it comes or the call ends."""
    gates = admission(max_in_flight=4)
    state = gates.gates(FAST)["t"].state
    slots = [await gates.enter("t", FAST), await gates.enter("t", Lane.ELASTIC)]
    for slot in slots:
        slot.prefill_begins()
    assert state.prefilling == 2
    slots[0].first_token()
    assert state.prefilling == 1
    for slot in slots:
        slot.release()
    assert (state.prefilling, state.running) == (0, 0)
