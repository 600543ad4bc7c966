"""Enqueues that travel together."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from gateway.core.errors import RateLimited, StoreUnavailable
from gateway.core.work import Quota, SegmentSpec
from gateway.jobs.enqueues import Enqueues
from gateway.store.client import StoreClient
from gateway.store.keys import shard_key
from gateway.store.queue import QueueClient
from tests.support.segments import SHARD, held, segment


def _steps(queue: QueueClient, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The segments of each step that the queue is asked for, from now on."""
    seen: list[int] = []
    shipped = queue.enqueue_all

    async def noted(
        shard: str, wanted: Sequence[tuple[SegmentSpec, Quota]]
    ) -> list[bool | RateLimited | ValueError]:
        seen.append(len(wanted))
        return await shipped(shard, wanted)

    monkeypatch.setattr(queue, "enqueue_all", noted)
    return seen


async def _leased(queue: QueueClient) -> set[str]:
    """Everything that can be leased, and nothing of it twice."""
    taken: list[tuple[str, int]] = []
    while lease := await queue.lease(SHARD, "w", 64, 10**9, 60_000):
        taken += held(lease)
    assert len(taken) == len(set(taken))
    return {name for name, _ in taken}


async def test_what_waits_goes_together(
    store: StoreClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred at once are two steps, also on a shard that is new; one later is one of its own."""
    queue = QueueClient(store)
    steps = _steps(queue, monkeypatch)
    enqueues = Enqueues(queue)
    sent = (enqueues.send(SHARD, segment(f"s{n}.0", 1, tenant=f"t{n % 3}")) for n in range(100))
    assert await asyncio.gather(*sent) == [True] * 100
    assert await enqueues.send(SHARD, segment("last.0", 1))
    assert steps == [64, 36, 1]
    assert await queue.audit(SHARD) == []
    assert await _leased(queue) == {"last.0", *(f"s{n}.0" for n in range(100))}


async def test_a_refusal_is_for_one_alone(store: StoreClient) -> None:
    """A quota that is used up in the step itself, and a segment that is there, harm no other."""
    queue = QueueClient(store)
    enqueues = Enqueues(queue)
    await enqueues.send(SHARD, segment("old.0", 1))
    few = Quota(rows=3)
    sent = (
        enqueues.send(SHARD, segment("old.0", 1), few),
        enqueues.send(SHARD, segment("a.0", 1), few),
        enqueues.send(SHARD, segment("a.0", 1), few),
        enqueues.send(SHARD, segment("big.0", 2), few),
        enqueues.send(SHARD, segment("b.0", 1), few),
        enqueues.send(SHARD, segment("c.0", 1), few),
        enqueues.send(SHARD, segment("d.0", 1), Quota(tokens=300)),
        enqueues.send(SHARD, segment("e.0", 1, tenant="other"), few),
    )
    answers = await asyncio.gather(*sent, return_exceptions=True)
    refused = [isinstance(answer, RateLimited) for answer in answers]
    assert refused == [False, False, False, True, False, True, True, False]
    assert [answer for answer in answers if isinstance(answer, bool)] == [
        False,
        True,
        False,
        True,
        True,
    ]
    assert "of which 3 are in use" in str(answers[5])
    assert await queue.audit(SHARD) == []
    assert await _leased(queue) == {"old.0", "a.0", "b.0", "e.0"}


@pytest.mark.parametrize("broken", ["tn:bad", "q:bad"])
async def test_a_tenant_with_broken_keys_harms_no_other(store: StoreClient, broken: str) -> None:
    """Nothing of it is half written: once its key is right again, its segments can be added."""
    queue = QueueClient(store)
    enqueues = Enqueues(queue)
    await store.execute_command("SET", shard_key(SHARD, broken), "x")
    specs = [segment(f"{t}{n}.0", 1, tenant=t) for n in range(2) for t in ("bad", "good")]
    sent = (enqueues.send(SHARD, spec) for spec in specs)
    answers = await asyncio.gather(*sent, return_exceptions=True)
    assert [isinstance(answer, ValueError) for answer in answers] == [True, False] * 2
    assert answers[1::2] == [True, True]
    await store.execute_command("DEL", shard_key(SHARD, broken))
    again = [await enqueues.send(SHARD, spec) for spec in specs]
    assert again == [True, False] * 2
    assert await queue.audit(SHARD) == []
    assert await _leased(queue) == {spec.segment for spec in specs}


async def test_delayed_and_held_ones_among_others(store: StoreClient) -> None:
    """Each waits where it belongs."""
    queue = QueueClient(store)
    enqueues = Enqueues(queue)
    specs = [
        segment("now.0", 1),
        segment("later.0", 1, delay_ms=60_000),
        replace(segment("held.0", 1), held=True),
    ]
    answers = await asyncio.gather(*(enqueues.send(SHARD, spec) for spec in specs))
    assert answers == [True] * 3
    assert (await queue.stats(SHARD))["later"] == 1
    assert await queue.audit(SHARD) == []
    assert await _leased(queue) == {"now.0"}
    await queue.start(SHARD, "held.0")
    assert await _leased(queue) == {"held.0"}


async def test_all_who_wait_for_work_are_woken(store: StoreClient) -> None:
    """Two segments in one step are work for two dispatchers."""
    queue = QueueClient(store)
    enqueues = Enqueues(queue)
    async with asyncio.timeout(2):
        waiting = [asyncio.create_task(queue.wait([SHARD], 30)) for _ in range(2)]
        await asyncio.sleep(0.05)
        await asyncio.gather(*(enqueues.send(SHARD, segment(f"s{n}.0", 1)) for n in range(2)))
        await asyncio.gather(*waiting)


async def test_a_caller_that_leaves_leaves_its_enqueue(store: StoreClient) -> None:
    """It is in the queue, once, and so are those beside it."""
    queue = QueueClient(store)
    enqueues = Enqueues(queue)
    sent = [asyncio.create_task(enqueues.send(SHARD, segment(f"s{n}.0", 1))) for n in range(3)]
    await asyncio.sleep(0)
    sent[1].cancel()
    answers = await asyncio.gather(*sent, return_exceptions=True)
    assert [answers[0], answers[2]] == [True, True]
    assert isinstance(answers[1], asyncio.CancelledError)
    assert await _leased(queue) == {"s0.0", "s1.0", "s2.0"}


async def test_a_loss_of_the_server_is_noticed(store: StoreClient) -> None:
    """A shard that it forgot is listed again before its next segments."""
    queue = QueueClient(store)
    enqueues = Enqueues(queue)
    await enqueues.send(SHARD, segment("a.0", 1))
    await store.flushall()
    sent = (enqueues.send(SHARD, segment(name, 1)) for name in ("a.0", "b.0"))
    assert await asyncio.gather(*sent) == [True, True]
    assert await queue.shards() == [SHARD]


async def test_an_outage_is_told_to_all(
    store: StoreClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody waits for ever. The step may have been done: sending it again changes nothing."""
    queue = QueueClient(store)
    shipped = queue.enqueue_all

    async def lost(shard: str, wanted: Sequence[tuple[SegmentSpec, Quota]]) -> list[bool]:
        await shipped(shard, wanted)
        raise StoreUnavailable("The queue does not answer.")

    specs = [segment(f"s{n}.0", 1) for n in range(3)]
    enqueues = Enqueues(queue)
    with monkeypatch.context() as patch:
        patch.setattr(queue, "enqueue_all", lost)
        sent = (enqueues.send(SHARD, spec) for spec in specs)
        answers = await asyncio.gather(*sent, return_exceptions=True)
    assert all(isinstance(answer, StoreUnavailable) for answer in answers)
    sent = (enqueues.send(SHARD, spec) for spec in specs)
    assert await asyncio.gather(*sent) == [False] * 3
    assert await queue.audit(SHARD) == []
    assert await _leased(queue) == {"s0.0", "s1.0", "s2.0"}
