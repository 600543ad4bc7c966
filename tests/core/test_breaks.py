"""Long work in short stretches."""

import asyncio
import time

from gateway.core.breaks import Breaks


async def test_others_run_while_long_work_goes_on() -> None:
    """Work of 30 ms lets the loop pass about once a millisecond, not once at its end."""
    passes = 0
    working = True

    async def count() -> None:
        nonlocal passes
        while working:
            passes += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    breaks = Breaks()
    for _ in range(30):
        _work(0.001)
        await breaks.take()
    working = False
    await counting
    assert passes >= 10


async def test_short_work_does_not_wait() -> None:
    """Before a millisecond is over nothing else runs."""
    ran: list[int] = []
    asyncio.get_running_loop().call_soon(ran.append, 1)
    await Breaks().take()
    assert not ran


async def test_work_gets_its_share_of_a_busy_loop() -> None:
    """Where a pass takes 50 ms, a stretch may take some of them, so that the work ends."""
    breaks = Breaks()
    _work(0.002)
    asyncio.get_running_loop().call_soon(_work, 0.05)
    await breaks.take()
    ran: list[int] = []
    asyncio.get_running_loop().call_soon(ran.append, 1)
    _work(0.002)
    await breaks.take()
    assert not ran


def _work(seconds: float) -> None:
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass
