"""Forgetting a job that has ended, with its result and its key in the queue."""

from gateway.core.errors import Conflict, NotFound
from gateway.store.jobs import JobStore
from gateway.store.keys import shard_of
from gateway.store.queue import QueueClient


async def purge_job(jobs: JobStore, queue: QueueClient, job_id: str) -> None:
    """Remove the job from disk and Redis; doing it again after a crash finishes it.

    Raises NotFound, or Conflict when it has not ended.
    """
    record = await jobs.load(job_id)
    if record is None:
        raise NotFound(f"No such Job object: {job_id[:64]}", param="id")
    if record.end is None:
        raise Conflict(
            f"A job that is {record.status} cannot be purged: cancel it first.",
            code="not_terminal",
        )
    if await jobs.epoch() is not None:  # else this key keeps a repair from counting it twice
        await queue.purge(shard_of(record.facts.model), record.facts.segment)
    await jobs.remove(record)
