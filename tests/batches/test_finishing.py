"""Who finishes what, and when."""

import asyncio

import pytest

from gateway.batches.finishing import Finisher, Finishing
from gateway.core.work import FinishClaim
from tests.support.batch import chat_line
from tests.support.batch_plane import BatchPlane


class Slow:
    """Finishes nothing until it may."""

    def __init__(self) -> None:
        self.claims: list[FinishClaim] = []
        self.go = asyncio.Event()

    async def take(self, shard: str, claim: FinishClaim) -> None:
        """Note the claim and wait."""
        self.claims.append(claim)
        await self.go.wait()


async def test_jobs_are_not_held_up_by_batches(
    plane: BatchPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With many batches being written a job is finished when its row is committed, at no poll."""
    monkeypatch.setattr("gateway.batches.finishing._POLL_SECONDS", 60.0)
    for number in range(4):
        await plane.start(chat_line(str(number), "x"))
    while await plane.run(64):
        pass
    batches, jobs, wake = Slow(), Slow(), asyncio.Event()
    work = asyncio.create_task(Finishing(plane.queue, batches, jobs, Finisher("f"), wake).run())
    async with asyncio.timeout(5):
        while len(batches.claims) < 2:  # noqa: ASYNC110 - a state elsewhere
            await asyncio.sleep(0.01)
    job_id = (await plane.job())["id"]
    await plane.run(1)
    wake.set()
    async with asyncio.timeout(5):
        while not jobs.claims:  # noqa: ASYNC110 - a state elsewhere
            await asyncio.sleep(0.002)
    assert [claim.job for claim in jobs.claims] == [job_id]
    assert len(batches.claims) == 2
    work.cancel()


async def test_a_fault_is_no_end(plane: BatchPlane) -> None:
    """A segment that cannot be finished does not keep the next one waiting."""

    class Broken(Slow):
        async def take(self, shard: str, claim: FinishClaim) -> None:
            self.claims.append(claim)
            raise RuntimeError("broken")

    broken, wake = Broken(), asyncio.Event()
    work = asyncio.create_task(Finishing(plane.queue, broken, broken, Finisher("f"), wake).run())
    for number in range(3):
        await plane.job(str(number))
    await plane.run(3)
    async with asyncio.timeout(5):
        while len(broken.claims) < 3:  # noqa: ASYNC110 - a state elsewhere
            await asyncio.sleep(0.01)
    assert not work.done()
    work.cancel()
