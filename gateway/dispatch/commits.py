"""Commits on their way to the queue: what ends at the same time goes together."""

from collections.abc import Sequence

from gateway.core.coalescer import Coalescer
from gateway.core.work import Committed, RunOutcomes
from gateway.store.queue import QueueClient

_MOST = 512


class Commits:
    """Sends all that waits for a shard in one step, so that small runs cost it little."""

    def __init__(self, queue: QueueClient) -> None:
        self._queue = queue
        self._waiting = Coalescer(self._step, _MOST)

    async def send(self, shard: str, run: RunOutcomes, hour: str) -> Committed:
        """As ``QueueClient.commit``; what fails with one run fails with that one alone."""
        return await self._waiting.send((shard, hour), run)

    async def _step(
        self, key: tuple[str, str], runs: Sequence[RunOutcomes]
    ) -> list[Committed | Exception]:
        shard, hour = key
        done = await self._queue.commit_all(shard, runs, hour)
        return [
            committed or ValueError(f"{run.segment} has no such row or is broken")
            for run, committed in zip(runs, done, strict=True)
        ]
