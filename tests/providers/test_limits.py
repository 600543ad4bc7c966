"""The single timer of an attempt."""

import asyncio

import pytest

from gateway.core.errors import UpstreamTimeout
from gateway.core.targets import Timeouts
from gateway.providers.limits import AttemptLimits


async def test_each_wait_has_its_limit() -> None:
    """A wait that takes too long is cut, and the message names the limit."""
    limits = AttemptLimits("t", Timeouts())
    assert await limits.wait(asyncio.sleep(0, "done"), "idle", 1) == "done"
    with pytest.raises(UpstreamTimeout, match="idle"):
        await limits.wait(asyncio.sleep(9), "idle", 0.01)
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    limits.close()


async def test_many_short_waits_outlive_one_limit() -> None:
    """The limit is for each wait, not for all of them."""
    limits = AttemptLimits("t", Timeouts())
    for _ in range(8):
        await limits.wait(asyncio.sleep(0.01), "idle", 0.05)
    limits.close()


async def test_the_total_ends_it_all() -> None:
    """Short waits do not add up to more than the total."""
    limits = AttemptLimits("t", Timeouts(total=0.03))

    async def many() -> None:
        for _ in range(20):
            await limits.wait(asyncio.sleep(0.005), "idle", 1)

    with pytest.raises(UpstreamTimeout, match="total"):
        await many()
    limits.close()


async def test_time_between_waits_does_not_count() -> None:
    """A slow reader is no fault of the target."""
    limits = AttemptLimits("t", Timeouts())
    await limits.wait(asyncio.sleep(0), "idle", 0.02)
    await asyncio.sleep(0.05)
    assert await limits.wait(asyncio.sleep(0.005, "ok"), "idle", 0.02) == "ok"
    limits.close()


async def test_a_cancel_from_outside_stays_a_cancel() -> None:
    """Being cancelled is not a timeout."""
    limits = AttemptLimits("t", Timeouts())
    task = asyncio.create_task(limits.wait(asyncio.sleep(9), "idle", 5))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    limits.close()
