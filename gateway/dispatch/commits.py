"""Commits on their way to the queue: while one step is under way, what comes waits for the next."""

import asyncio
from collections.abc import Sequence

from gateway.core.work import Committed, RunOutcomes
from gateway.store.queue import QueueClient

_Item = tuple[RunOutcomes, "asyncio.Future[Committed]"]


class Commits:
    """Sends all that waits for a shard in one step, so that small runs cost it little."""

    def __init__(self, queue: QueueClient) -> None:
        self._queue = queue
        self._waiting: dict[tuple[str, str], list[_Item]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def send(self, shard: str, run: RunOutcomes, hour: str) -> Committed:
        """As ``QueueClient.commit``; what fails with one run fails with that one alone."""
        answer: asyncio.Future[Committed] = asyncio.get_running_loop().create_future()
        key = shard, hour
        if key in self._waiting:
            self._waiting[key].append((run, answer))
        else:
            self._waiting[key] = [(run, answer)]
            task = asyncio.create_task(self._send_all(shard, hour))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return await answer

    async def _send_all(self, shard: str, hour: str) -> None:
        while items := self._waiting[shard, hour]:
            self._waiting[shard, hour] = []
            await self._step(shard, items, hour)
        del self._waiting[shard, hour]

    async def _step(self, shard: str, items: Sequence[_Item], hour: str) -> None:
        try:
            done = await self._queue.commit_all(shard, [run for run, _ in items], hour)
        except Exception as error:  # noqa: BLE001 - handed to whoever waits
            for _, answer in items:
                if not answer.done():
                    answer.set_exception(error)
            return
        for (run, answer), committed in zip(items, done, strict=True):
            if answer.done():
                continue
            if committed is None:
                answer.set_exception(ValueError(f"{run.segment} has no such row or is broken"))
            else:
                answer.set_result(committed)
