"""Work that goes in steps."""

import asyncio
from collections.abc import Sequence

import pytest

from gateway.core.coalescer import Coalescer


class Steps:
    """Doubles numbers; the first step waits until it is let go. Odd ones are refused."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, list[int]]] = []
        self.go = asyncio.Event()

    async def step(self, key: str, items: Sequence[int]) -> list[int | Exception]:
        self.seen.append((key, list(items)))
        await self.go.wait()
        if 666 in items:
            raise OSError("away")
        return [ValueError(f"{item}") if item % 2 else 2 * item for item in items]


async def _settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_what_comes_meanwhile_goes_together() -> None:
    """One goes at once; those that come while it is under way are the next steps, in order."""
    steps = Steps()
    coalescer = Coalescer(steps.step, 4)
    sent = [asyncio.create_task(coalescer.send("k", 0))]
    await _settled()
    assert steps.seen == [("k", [0])]
    sent += [asyncio.create_task(coalescer.send("k", 2 * n)) for n in range(1, 7)]
    await _settled()
    steps.go.set()
    assert await asyncio.gather(*sent) == [0, 4, 8, 12, 16, 20, 24]
    assert steps.seen == [("k", [0]), ("k", [2, 4, 6, 8]), ("k", [10, 12])]


async def test_keys_do_not_wait_for_each_other() -> None:
    """Steps of two keys are under way at the same time."""
    steps = Steps()
    coalescer = Coalescer(steps.step, 4)
    sent = [asyncio.create_task(coalescer.send(key, 2)) for key in "ab"]
    await _settled()
    assert steps.seen == [("a", [2]), ("b", [2])]
    steps.go.set()
    assert await asyncio.gather(*sent) == [4, 4]


async def test_one_that_is_refused_is_refused_alone() -> None:
    """Its neighbours in the step have their answers."""
    steps = Steps()
    steps.go.set()
    coalescer = Coalescer(steps.step, 4)
    sent = (coalescer.send("k", item) for item in (2, 3, 4))
    first, refused, last = await asyncio.gather(*sent, return_exceptions=True)
    assert (first, last) == (4, 8)
    assert isinstance(refused, ValueError)


async def test_a_step_that_fails_is_told_to_all_of_it() -> None:
    """And to nobody after it."""
    steps = Steps()
    steps.go.set()
    coalescer = Coalescer(steps.step, 2)
    sent = (coalescer.send("k", item) for item in (2, 666, 4))
    *failed, last = await asyncio.gather(*sent, return_exceptions=True)
    assert all(isinstance(answer, OSError) for answer in failed)
    assert last == 8
    assert await coalescer.send("k", 6) == 12


async def test_a_sender_that_leaves_leaves_its_item() -> None:
    """It is sent all the same, whether it waits or is under way; the others do not notice."""
    steps = Steps()
    coalescer = Coalescer(steps.step, 4)
    sent = [asyncio.create_task(coalescer.send("k", 2))]
    await _settled()
    sent += [asyncio.create_task(coalescer.send("k", item)) for item in (4, 6)]
    await _settled()
    sent[0].cancel()
    sent[1].cancel()
    steps.go.set()
    assert await sent[2] == 12
    assert steps.seen == [("k", [2]), ("k", [4, 6])]
    for task in sent[:2]:
        with pytest.raises(asyncio.CancelledError):
            await task
