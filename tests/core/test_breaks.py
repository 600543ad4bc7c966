"""Long work in short stretches."""

import asyncio

from gateway.core.breaks import Breaks


class Watch:
    """A clock that work moves on."""

    def __init__(self) -> None:
        self.now = 0.0

    def work(self, seconds: float) -> None:
        """Take that long."""
        self.now += seconds

    def __call__(self) -> float:
        return self.now


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
    watch = Watch()
    breaks = Breaks(watch)
    for _ in range(30):
        watch.work(0.001)
        await breaks.take()
    working = False
    await counting
    assert 10 <= passes <= 31


async def test_short_work_does_not_wait() -> None:
    """Before a millisecond is over nothing else runs."""
    ran: list[int] = []
    watch = Watch()
    breaks = Breaks(watch)
    asyncio.get_running_loop().call_soon(ran.append, 1)
    watch.work(0.0009)
    await breaks.take()
    assert not ran
    watch.work(0.0002)
    await breaks.take()
    assert ran


async def test_work_gets_its_share_of_a_busy_loop() -> None:
    """Where a pass takes 50 ms, a stretch may take 5 of them, so that the work ends."""
    watch = Watch()
    breaks = Breaks(watch)
    watch.work(0.002)
    asyncio.get_running_loop().call_soon(watch.work, 0.05)
    await breaks.take()
    ran: list[int] = []
    asyncio.get_running_loop().call_soon(ran.append, 1)
    watch.work(0.0049)
    await breaks.take()
    assert not ran
    watch.work(0.0002)
    await breaks.take()
    assert ran
