"""Jobs on their way to the queue: those that come at the same time go together."""

from collections.abc import Sequence

from gateway.core.coalescer import Coalescer
from gateway.core.work import Quota, SegmentSpec
from gateway.store.queue import MOST_ENQUEUED, QueueClient


class Enqueues:
    """Sends all that waits for a shard in one step."""

    def __init__(self, queue: QueueClient) -> None:
        self._queue = queue
        self._waiting = Coalescer(self._step, MOST_ENQUEUED)

    async def send(self, shard: str, spec: SegmentSpec, quota: Quota | None = None) -> bool:
        """As ``QueueClient.enqueue``; what is refused of one is refused of that one alone."""
        return await self._waiting.send(shard, (spec, quota or Quota()))

    async def _step(
        self, shard: str, wanted: Sequence[tuple[SegmentSpec, Quota]]
    ) -> list[bool | Exception]:
        return [*await self._queue.enqueue_all(shard, wanted)]
