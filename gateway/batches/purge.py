"""Forgetting a batch that has ended: nothing of it remains but the files it gave to its owner."""

from gateway.core.errors import Conflict, NotFound
from gateway.store.batches import BatchStore
from gateway.store.keys import shard_of
from gateway.store.queue import QueueClient


async def purge_batch(batches: BatchStore, queue: QueueClient, batch_id: str) -> None:
    """Remove the batch from disk and Redis; its input, output and error file stay.

    Doing it again after a crash finishes it. Raises NotFound, or Conflict when it has not ended.
    """
    record = await batches.load(batch_id)
    if record is None:
        raise NotFound(f"No such Batch object: {batch_id[:64]}", param="id")
    if not record.ended:
        raise Conflict(
            f"A batch that is {record.status} cannot be purged: cancel it first.",
            code="not_terminal",
        )
    if await batches.epoch() is not None:  # else these keys keep a repair from counting it twice
        for segment in record.segments:
            await queue.purge(shard_of(segment.model), segment.segment)
    await batches.forget(record)
