"""Batches: manifest on disk first, record in Redis, final state on disk again.

Disk: the small files of ``batch_disk``, and ``input``, a second name of the input file. Redis: a
hash per batch, sorted sets for listing and intake; what it loses or misses is put back from disk.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from gateway.core.errors import NotFound, StoreFull, StoreUnavailable
from gateway.schemas.batch import BatchStatus
from gateway.store.batch_disk import BatchDisk, is_batch_id, job_file
from gateway.store.batch_record import (
    BatchFacts,
    BatchRecord,
    Change,
    SegmentEnd,
    closed_field,
    first_fields,
)
from gateway.store.blobs import LocalBlobs
from gateway.store.job_commands import IdempotencyClaim, JobCommands, key_digest
from gateway.store.rebuild import EndedSegment

_KINDS = ("output", "error")
_NEEDED = ("input", "plan.json", "control.json", "finalizing", "output.jsonl", "error.jsonl")


class BatchStore:
    """All batches. Raises StoreUnavailable when Redis does not answer."""

    def __init__(self, commands: JobCommands, blobs: LocalBlobs) -> None:
        self._commands = commands
        self._blobs = blobs
        self._disk = BatchDisk(blobs)

    async def held_key(self, tenant: str, key: str) -> IdempotencyClaim | None:
        """The claim that holds an idempotency key now."""
        claim = await self._commands.held_key(tenant, key)
        if claim is None and await self._commands.epoch() is None:
            await self._find_key(tenant, key)
            claim = await self._commands.held_key(tenant, key)
        return claim

    async def claim_key(self, tenant: str, key: str, claim: IdempotencyClaim) -> IdempotencyClaim:
        """The claim that holds an idempotency key for 24 h: ``claim`` or an earlier one."""
        return await self._commands.claim_key(tenant, key, claim)

    async def create(self, facts: BatchFacts, input_blob: str) -> BatchRecord:
        """Write a batch, again if need be. On disk it exists, without room (StoreFull) not."""
        await self._commands.ping()
        fields = first_fields(facts)
        try:
            await self._blobs.copy(input_blob, input_name(facts.id))
            await self._disk.save_facts(facts)
            with suppress(StoreUnavailable):
                await self._commands.add(facts.id, facts.tenant, fields)
                await self.ask_intake(facts)
        except StoreFull:
            await self.forget(BatchRecord.from_fields(fields))
            raise
        return BatchRecord.from_fields(fields)

    async def get(self, tenant: str, batch_id: str) -> BatchRecord:
        """The record. NotFound for unknown and foreign ids; StoreUnavailable while put back."""
        record = await self.load(batch_id) if is_batch_id(batch_id) else None
        if record is None and is_batch_id(batch_id) and await self.is_on_disk(batch_id, tenant):
            raise StoreUnavailable("The batch is being put back into the queue.", retry_after=2)
        if record is None or record.facts.tenant != tenant:
            raise NotFound(f"No such Batch object: {batch_id[:64]}", param="id")
        return record

    async def load(self, batch_id: str) -> BatchRecord | None:
        """The record as Redis has it; if it has none, the final state from disk."""
        return await self.live(batch_id) or await self.durable(batch_id)

    async def durable(self, batch_id: str) -> BatchRecord | None:
        """The final state on disk; None while the batch has not ended."""
        return _record(await self._disk.final(batch_id))

    async def live(self, batch_id: str) -> BatchRecord | None:
        """The record as Redis has it."""
        return _record(await self._commands.fields(batch_id))

    async def settled_or_live(self, batch_id: str) -> BatchRecord | None:
        """The record; a final state on disk wins and is put back into Redis if that is behind."""
        record = await self.live(batch_id)
        if record is not None and record.ended:
            return record
        final = await self._disk.final(batch_id)
        if not final:
            return record
        await self._commands.set_fields(batch_id, final)
        return _record(final)

    async def page(
        self, tenant: str, limit: int, after: str | None
    ) -> tuple[list[BatchRecord], bool]:
        """Newest first, and whether more follow."""
        ids = await self._commands.page(tenant, limit + 1, after)
        records = await asyncio.gather(*map(self.load, ids[:limit]))
        return [record for record in records if record is not None], len(ids) > limit

    async def move(
        self, batch_id: str, allowed: Sequence[BatchStatus], to: BatchStatus, change: Change
    ) -> BatchStatus | None:
        """Enter ``to`` if the batch is in one of ``allowed``; the state before, None if unknown.

        It was moved exactly when the answer is one of ``allowed``.
        """
        before = await self._commands.move(batch_id, allowed, to, change.to_fields())
        return BatchStatus(before) if before else None

    async def close_segment(self, batch_id: str, segment: str, end: SegmentEnd) -> None:
        """Note that the files of ``segment`` are written."""
        await self._commands.set_fields(batch_id, closed_field(segment, end))

    async def mark_cancel(self, batch_id: str, at: int) -> None:
        """Make a cancel accepted at ``at`` durable."""
        await self._disk.save_cancel(batch_id, at)

    async def mark_plan(self, batch_id: str, plan: Change) -> None:
        """Make durable what validation found, before the batch is in progress."""
        await self._disk.save_plan(batch_id, plan)

    async def finalizing_at(self, batch_id: str, now: int) -> int:
        """When the batch began to be finalised, set once: its files are named after it."""
        return await self._disk.finalizing_at(batch_id, now)

    async def save_final(self, batch_id: str) -> None:
        """Make the final state durable and have it announced. Only for a batch that has ended."""
        fields = await self._commands.fields(batch_id)
        if fields:
            await self._disk.save_final(batch_id, fields)
            await self._commands.ask_announcement(batch_id)

    async def claim_announcement(self, ttl_ms: int) -> str | None:
        """Claim a batch that ended and is not announced."""
        return await self._commands.claim_announcement(ttl_ms)

    async def mark_announced(self, batch_id: str) -> None:
        """Note on disk that the end of the batch was announced."""
        await self._blobs.put(job_file(batch_id, "announced"), b"")

    async def end_announcement(self, batch_id: str) -> None:
        """Nothing is left to announce of the batch."""
        await self._commands.end_announcement(batch_id)

    async def announce_again(self, batch_id: str) -> None:
        """Have the end of a batch announced if it is not known that it was."""
        if await self._blobs.size(job_file(batch_id, "announced")) is None:
            await self._commands.ask_announcement(batch_id)

    async def remove_work(self, batch_id: str, segments: int) -> None:
        """Delete what only a running batch needs: parts, indexes, lines, input link."""
        await self._blobs.delete(job_file(batch_id, "parts/"))
        names = [job_file(batch_id, name) for name in _NEEDED]
        for place in range(segments):
            segment = f"{batch_id}.{place}"
            names += [index_name(segment), *(lines_name(segment, kind) for kind in _KINDS)]
        for name in names:
            await self._blobs.delete(name)

    async def forget(self, record: BatchRecord) -> None:
        """Delete the batch, its bill apart: its folder first, so that nothing puts it back."""
        await self._disk.forget(record, await self.epoch() if record.closed else None)
        await self._commands.remove(record.id, record.facts.tenant)

    async def forgotten(self) -> list[EndedSegment]:
        """What batches had delivered that were forgotten before Redis lost everything."""
        return await self._disk.forgotten(await self.epoch())

    async def with_tables(self) -> list[str]:
        """Batches on disk that have closed segments and still know where their lines lie."""
        ids = await self.all_ids()
        first = [table_name(f"{batch_id}.0") for batch_id in ids]
        return [i for i, name in zip(ids, first, strict=True) if await self._blobs.size(name)]

    async def remove_tables(self, batch_id: str) -> None:
        """Forget where the lines of a batch lie: its files are gone."""
        for name in await self._blobs.list(job_file(batch_id, "")):
            if name.startswith(job_file(batch_id, "table-")):
                await self._blobs.delete(name)

    async def ask_intake(self, facts: BatchFacts) -> None:
        """Let a dispatcher validate the batch, oldest first."""
        await self._commands.ask_intake(facts.id, facts.created_at)

    async def claim_intake(self, ttl_ms: int) -> str | None:
        """Claim a batch that waits for validation."""
        return await self._commands.claim_intake(ttl_ms)

    async def hold_intake(self, batch_id: str, ttl_ms: int) -> None:
        """Keep a claim for another ``ttl_ms``."""
        await self._commands.claim_intake(ttl_ms, batch_id)

    async def end_intake(self, batch_id: str) -> None:
        """The batch is validated and enqueued, failed, or cancelled."""
        await self._commands.end_intake(batch_id)

    async def all_ids(self) -> list[str]:
        """Every batch that has a folder on disk."""
        return await self._disk.ids()

    async def known(self, batch_id: str) -> bool:
        """Whether Redis has the record."""
        return await self._commands.exists(batch_id)

    async def epoch(self) -> str | None:
        """Names what Redis holds; None when it lost everything and that is not put back yet."""
        return await self._commands.epoch()

    async def begin_epoch(self) -> str:
        """Announce that all is about to be put back."""
        return await self._commands.begin_epoch()

    async def end_epoch(self, epoch: str) -> bool:
        """All is put back. False: Redis lost everything once more meanwhile."""
        return await self._commands.end_epoch(epoch)

    async def server(self) -> str:
        """Names the Redis process; another one may have lost the last second."""
        return await self._commands.server()

    async def is_final(self, batch_id: str) -> bool:
        """Whether the final state is on disk."""
        return await self._disk.is_final(batch_id)

    async def put_back(self, batch_id: str) -> BatchRecord | None:
        """Restore the record from disk; a batch that had not ended goes through intake again."""
        fields = await self._disk.fields(batch_id)
        record = _record(fields)
        if record is None:
            return None
        facts = record.facts
        await self._commands.add(facts.id, facts.tenant, fields)
        await self._restore_key(facts)
        if not record.ended:
            await self.ask_intake(facts)
        return record

    async def is_on_disk(self, batch_id: str, tenant: str | None = None) -> bool:
        """Whether the batch (of that tenant) was created and not forgotten."""
        facts = await self._disk.facts(batch_id)
        return facts is not None and tenant in {None, facts.tenant}

    async def _find_key(self, tenant: str, key: str) -> None:
        """While Redis has lost the keys: look for the batch that came with this one."""
        for batch_id in await self._disk.ids():
            facts = await self._disk.facts(batch_id)
            if facts is None or facts.tenant != tenant or facts.idempotency is None:
                continue
            if facts.idempotency[0] == key_digest(key):
                await self._restore_key(facts)

    async def _restore_key(self, facts: BatchFacts) -> None:
        if facts.idempotency is not None:
            key, request = facts.idempotency
            claim = IdempotencyClaim(facts.id, request)
            await self._commands.restore_key(facts.tenant, key, claim, facts.created_at)


def job_of(segment: str) -> str:
    """The batch a segment belongs to."""
    return segment.rpartition(".")[0]


def input_name(batch_id: str) -> str:
    """Blob name of the input as the batch keeps it."""
    return job_file(batch_id, "input")


def index_name(segment: str) -> str:
    """Blob name of a segment's index."""
    batch_id, _, place = segment.rpartition(".")
    return job_file(batch_id, f"index-{place}")


def lines_name(segment: str, kind: str) -> str:
    """Blob name of the lines of a closed segment; ``kind`` is ``output`` or ``error``."""
    batch_id, _, place = segment.rpartition(".")
    return job_file(batch_id, f"{kind}-{place}.jsonl")


def table_name(segment: str) -> str:
    """Blob name of the table that says where the line of each row of a closed segment lies."""
    batch_id, _, place = segment.rpartition(".")
    return job_file(batch_id, f"table-{place}")


def merged_name(batch_id: str, kind: str) -> str:
    """Blob name of the lines of all segments together."""
    return job_file(batch_id, f"{kind}.jsonl")


def _record(fields: dict[str, str]) -> BatchRecord | None:
    return BatchRecord.from_fields(fields) if fields else None
