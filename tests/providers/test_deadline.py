"""The single timer of an attempt."""

import asyncio

import pytest

from gateway.providers.deadline import Deadline


def deadline(total: float = 60.0) -> Deadline:
    """One that ends after ``total`` seconds."""
    loop = asyncio.get_running_loop()
    made = Deadline(loop)
    made.ends = loop.time() + total
    return made


async def test_each_wait_has_its_limit() -> None:
    """A wait that takes too long is cut, and it is not the total that did it."""
    limits = deadline()
    with pytest.raises(TimeoutError):
        await limits.wait(0.02)
    assert not limits.is_total


async def test_many_short_waits_outlive_one_limit() -> None:
    """The limit is for each wait, not for all of them."""
    limits = deadline()
    for _ in range(6):
        asyncio.get_running_loop().call_later(0.1, limits.come)
        await limits.wait(0.5)


async def test_a_shorter_limit_counts_at_once() -> None:
    """A timer that stands for later is moved forward."""
    limits = deadline()
    limits.come()
    asyncio.get_running_loop().call_soon(limits.come)
    await limits.wait(30)
    async with asyncio.timeout(10):
        with pytest.raises(TimeoutError):
            await limits.wait(0.02)


async def test_the_total_ends_it_all() -> None:
    """Short waits do not add up to more than the total."""
    limits = deadline(0.6)

    async def wait_on() -> None:
        while True:
            asyncio.get_running_loop().call_later(0.02, limits.come)
            await limits.wait(0.5)

    with pytest.raises(TimeoutError):
        await wait_on()
    assert limits.is_total


async def test_time_between_waits_does_not_count() -> None:
    """A slow reader is no fault of the target."""
    limits = deadline()
    for _ in range(2):
        asyncio.get_running_loop().call_soon(limits.come)
        await limits.wait(0.03)
        await asyncio.sleep(0.06)


async def test_a_cancel_from_outside_stays_a_cancel() -> None:
    """Being cancelled is not a timeout."""
    limits = deadline()
    task = asyncio.ensure_future(limits.wait(5))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    limits.close()


async def test_a_wait_goes_on() -> None:
    """What comes and ends no wait gives it its limit anew; then it is cut as any other."""
    limits = deadline()
    loop = asyncio.get_running_loop()
    for moment in (0.05, 0.1, 0.15):
        loop.call_later(moment, limits.go_on, 0.1)
    began = loop.time()
    waiting = limits.wait(0.1)
    assert limits.is_waiting
    with pytest.raises(TimeoutError):
        await waiting
    assert loop.time() - began > 0.2
