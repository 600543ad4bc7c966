"""The operator's hand on the queue, in a process of its own."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from gateway.batches.purge import purge_batch
from gateway.bootstrap.store_url import store_url
from gateway.core.errors import NotFound
from gateway.core.settings import Settings
from gateway.jobs.purge import purge_job
from gateway.store.batches import BatchStore
from gateway.store.blobs import LocalBlobs
from gateway.store.client import connect
from gateway.store.control import Scope
from gateway.store.controls import Controls
from gateway.store.job_commands import JobCommands
from gateway.store.job_files import is_job
from gateway.store.jobs import LISTING, JobStore
from gateway.store.keys import shard_of
from gateway.store.queue import QueueClient


@dataclass(frozen=True, slots=True)
class Selection:
    """A batch or job, a tenant, or everything when neither is given."""

    batch: str | None = None
    tenant: str | None = None


class QueueAdmin:
    """One command's view of the queue; ``open_admin`` makes it."""

    def __init__(
        self, queue: QueueClient, batches: BatchStore, jobs: JobStore, controls: Controls
    ) -> None:
        self._queue = queue
        self._batches = batches
        self._jobs = jobs
        self._controls = controls

    async def pause(self, chosen: Selection, *, resume: bool) -> int:
        """Pause or resume; how many shards or segments it is now true for.

        Of a tenant and of everything it also holds for what comes. 0: the batch has ended.
        """
        if chosen.batch is None:
            return await self._pause_all(chosen, resume=resume)
        act = self._queue.resume if resume else self._queue.pause
        running = await self._running(chosen)
        for batch_id in running:
            await self._controls.note_batch(batch_id, paused=not resume)
        known = [p for p in await self._places(chosen) if await act(*p) is not None]
        return len(known) if is_job(chosen.batch) else max(len(known), 1) if running else 0

    async def _pause_all(self, chosen: Selection, *, resume: bool) -> int:
        """On disk first: a shard that is new meanwhile finds it there, or is found here."""
        scope, shards = _scope_of(chosen), await self._queue.shards()
        await self._controls.note_pause(scope, shards, paused=not resume)
        shards = await self._queue.shards()
        for shard in shards:
            if resume:
                await self._queue.resume(shard, scope)
            else:
                await self._queue.pause_ahead(shard, scope)
        return len(shards)

    async def reprioritise(self, chosen: Selection, priority: int) -> int:
        """Set a priority; how many segments changed."""
        places = await self._places(chosen)
        changed = sum([await self._queue.reprioritise(*place, priority) for place in places])
        for batch_id in await self._running(chosen) if changed else ():
            await self._controls.note_batch(batch_id, priority=priority)
        return changed

    async def reweigh(self, tenant: str, weight: float) -> int:
        """Set the weight of what a tenant has queued; how many segments changed."""
        shards = await self._queue.shards()
        return sum([await self._queue.reweigh(shard, tenant, weight) for shard in shards])

    async def retry_dead(self, batch: str | None) -> int:
        """Rows that were given up and have no line yet start over; how many."""
        places = await self._places(Selection(batch))
        return sum([await self._queue.retry_dead(shard, scope.name) for shard, scope in places])

    async def dead(self, most: int) -> list[dict[str, Any]]:
        """Rows given up lately, newest first."""
        found = [
            (at, shard, row)
            for shard in await self._queue.shards()
            for at, row in await self._queue.given_up(shard, most)
        ]
        found.sort(key=lambda entry: entry[0], reverse=True)
        return [
            {
                "at": datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="seconds"),
                "shard": shard,
                "segment": row.segment,
                "row": row.index,
                "reason": row.reason,
                "last_error": row.code or None,
            }
            for at, shard, row in found[:most]
        ]

    async def purge(self, batch_id: str) -> None:
        """Forget a batch or job that has ended. Raises NotFound or Conflict."""
        if is_job(batch_id):
            await purge_job(self._jobs, self._queue, batch_id)
        else:
            await purge_batch(self._batches, self._queue, batch_id)

    async def confirm_clock(self) -> dict[str, int]:
        """Let deadlines pass again; the leap in ms of each shard that had one."""
        leaps = {
            shard: await self._queue.confirm_clock(shard) for shard in await self._queue.shards()
        }
        return {shard: ms for shard, ms in leaps.items() if ms}

    async def _places(self, chosen: Selection) -> list[tuple[str, Scope]]:
        if chosen.batch is not None:
            segments = await self._segments(chosen.batch)
            return [(shard_of(model), Scope("segment", name)) for name, model in segments]
        scope = _scope_of(chosen)
        return [(shard, scope) for shard in await self._queue.shards()]

    async def _running(self, chosen: Selection) -> list[str]:
        """The batches among the chosen that have not ended."""
        ids = await self._batches.all_ids() if chosen.batch is None else [chosen.batch]
        records = [await self._batches.live(i) for i in ids if not is_job(i)]
        return [
            record.id
            for record in records
            if record and not record.ended and chosen.tenant in {None, record.facts.tenant}
        ]

    async def _segments(self, name: str) -> list[tuple[str, str]]:
        """The segments of a batch or job with their models."""
        if is_job(name):
            job = await self._jobs.load(name)
            if job is not None:
                return [(job.facts.segment, job.facts.model)]
        else:
            batch = await self._batches.load(name)
            if batch is not None:
                return [(s.segment, s.model) for s in batch.segments]
        raise NotFound(f"No such batch or job: {name[:64]}", param="id")


def _scope_of(chosen: Selection) -> Scope:
    return Scope() if chosen.tenant is None else Scope("tenant", chosen.tenant)


@asynccontextmanager
async def open_admin(settings: Settings) -> AsyncIterator[QueueAdmin]:
    """Connect to the queue of ``settings``. Raises ConfigError when none is known."""
    client = connect(store_url(settings))
    try:
        blobs = LocalBlobs(settings.data_dir)
        batches = BatchStore(JobCommands(client), blobs)
        jobs = JobStore(JobCommands(client, LISTING), blobs)
        yield QueueAdmin(QueueClient(client), batches, jobs, Controls(blobs))
    finally:
        await client.aclose()
