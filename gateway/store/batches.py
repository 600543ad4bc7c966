"""Batches: manifest on disk first, record in Redis, final state on disk again.

Disk (``jobs/<id>/``): ``manifest.json`` (facts), ``input`` (a second name of the input file, so
that deleting the file does not hurt the batch), ``cancel`` (cancel was accepted), ``state.json``
(final state). Redis: a hash per batch, a sorted set per tenant for listing, one of batches that
wait for validation. Whatever Redis loses is put back from disk.
"""

from collections.abc import Sequence
from typing import Any

import orjson

from gateway.core.errors import NotFound, StoreUnavailable
from gateway.schemas.batch import BatchStatus
from gateway.store.batch_record import (
    BatchFacts,
    BatchRecord,
    Change,
    SegmentEnd,
    closed_field,
    first_fields,
)
from gateway.store.blobs import BlobStore
from gateway.store.job_commands import IdempotencyClaim, JobCommands

_JOBS = "jobs/"
_KINDS = ("output", "error")


class BatchStore:
    """All batches. Raises StoreUnavailable when Redis does not answer."""

    def __init__(self, commands: JobCommands, blobs: BlobStore) -> None:
        self._commands = commands
        self._blobs = blobs

    async def held_key(self, tenant: str, key: str) -> IdempotencyClaim | None:
        """The claim that holds an idempotency key now."""
        return await self._commands.held_key(tenant, key)

    async def claim_key(self, tenant: str, key: str, claim: IdempotencyClaim) -> IdempotencyClaim:
        """The claim that holds an idempotency key for 24 h: ``claim`` or an earlier one."""
        return await self._commands.claim_key(tenant, key, claim)

    async def create(self, facts: BatchFacts, input_blob: str) -> BatchRecord:
        """Write a batch: input link, manifest, record, intake. Doing it again is harmless."""
        await self._commands.ping()
        await self._blobs.copy(input_blob, input_name(facts.id))
        await self._blobs.put(_name(facts.id, "manifest.json"), facts.to_json())
        fields = first_fields(facts)
        await self._commands.add(facts.id, facts.tenant, fields)
        await self.ask_intake(facts)
        return BatchRecord.from_fields(fields)

    async def get(self, tenant: str, batch_id: str) -> BatchRecord:
        """The record. Raises NotFound for unknown and foreign ids.

        A batch that is on disk and not in Redis is about to be put back: StoreUnavailable.
        """
        record = await self.load(batch_id) if _is_id(batch_id) else None
        if record is None and _is_id(batch_id) and await self._is_on_disk(batch_id, tenant):
            raise StoreUnavailable("The batch is being put back into the queue.", retry_after=2)
        if record is None or record.facts.tenant != tenant:
            raise NotFound(f"No such Batch object: {batch_id[:64]}", param="id")
        return record

    async def load(self, batch_id: str) -> BatchRecord | None:
        """The record as Redis has it; if it has none, the final state from disk."""
        fields = await self._commands.fields(batch_id)
        if fields:
            return BatchRecord.from_fields(fields)
        return await self.durable(batch_id)

    async def durable(self, batch_id: str) -> BatchRecord | None:
        """The final state on disk; None while the batch has not ended."""
        fields = await self._final_fields(batch_id)
        return BatchRecord.from_fields(fields) if fields else None

    async def settled_or_live(self, batch_id: str) -> BatchRecord | None:
        """The record; a final state on disk wins and is put back into Redis if that lost it."""
        fields = await self._final_fields(batch_id)
        if not fields:
            return await self.load(batch_id)
        record = await self.load(batch_id)
        if record is None or not record.ended:
            await self._commands.set_fields(batch_id, fields)
        return BatchRecord.from_fields(fields)

    async def page(
        self, tenant: str, limit: int, after: str | None
    ) -> tuple[list[BatchRecord], bool]:
        """Newest first, and whether more follow."""
        ids = await self._commands.page(tenant, limit + 1, after)
        records = [await self.load(batch_id) for batch_id in ids[:limit]]
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
        await self._blobs.put(_name(batch_id, "cancel"), str(at).encode())

    async def save_final(self, batch_id: str) -> None:
        """Make the final state durable and have it announced. Only for a batch that has ended."""
        fields = await self._commands.fields(batch_id)
        if fields:
            await self._blobs.put(_name(batch_id, "state.json"), orjson.dumps(fields))
            await self._commands.ask_announcement(batch_id)

    async def claim_announcement(self, ttl_ms: int) -> str | None:
        """Claim a batch that ended and is not announced."""
        return await self._commands.claim_announcement(ttl_ms)

    async def mark_announced(self, batch_id: str) -> None:
        """Note on disk that the end of the batch was announced."""
        await self._blobs.put(_name(batch_id, "announced"), b"")

    async def end_announcement(self, batch_id: str) -> None:
        """Nothing is left to announce of the batch."""
        await self._commands.end_announcement(batch_id)

    async def announce_again(self, batch_id: str) -> None:
        """Have the end of a batch announced if it is not known that it was."""
        if await self._blobs.size(_name(batch_id, "announced")) is None:
            await self._commands.ask_announcement(batch_id)

    async def remove_work(self, batch_id: str, segments: int) -> None:
        """Delete what only a running batch needs: parts, indexes, lines, input link."""
        await self._blobs.delete(_name(batch_id, "parts/"))
        names = [input_name(batch_id), *(merged_name(batch_id, kind) for kind in _KINDS)]
        for place in range(segments):
            segment = f"{batch_id}.{place}"
            names += [index_name(segment), *(lines_name(segment, kind) for kind in _KINDS)]
        for name in names:
            await self._blobs.delete(name)

    async def forget(self, facts: BatchFacts) -> None:
        """Delete the batch: its folder first, so that nothing puts it back."""
        await self._blobs.delete(_name(facts.id, ""))
        await self._commands.remove(facts.id, facts.tenant)

    async def with_tables(self) -> list[str]:
        """Batches on disk that have closed segments and still know where their lines lie."""
        ids = await self.all_ids()
        first = [table_name(f"{batch_id}.0") for batch_id in ids]
        return [i for i, name in zip(ids, first, strict=True) if await self._blobs.size(name)]

    async def remove_tables(self, batch_id: str) -> None:
        """Forget where the lines of a batch lie: its files are gone."""
        for name in await self._blobs.list(_name(batch_id, "")):
            if name.startswith(_name(batch_id, "table-")):
                await self._blobs.delete(name)

    async def ask_intake(self, facts: BatchFacts) -> None:
        """Let a dispatcher validate the batch, oldest first."""
        await self._commands.ask_intake(facts.id, facts.created_at * 1000)

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
        names = await self._blobs.list(_JOBS)
        return [name[len(_JOBS) : -1] for name in names if name.endswith("/")]

    async def known(self, batch_id: str) -> bool:
        """Whether Redis has the record."""
        return await self._commands.exists(batch_id)

    async def fresh_epoch(self) -> bool:
        """Whether Redis is new to us: it was empty, or lost everything, since the last call."""
        return await self._commands.start_epoch()

    async def is_final(self, batch_id: str) -> bool:
        """Whether the final state is on disk."""
        return await self._blobs.size(_name(batch_id, "state.json")) is not None

    async def put_back(self, batch_id: str) -> BatchRecord | None:
        """Restore what Redis lost; a batch that had not ended is validated and run again."""
        facts = await self._manifest(batch_id)
        if facts is None:
            return None
        final = await self._final_fields(batch_id)
        fields = final or first_fields(facts) | await self._cancel_fields(batch_id)
        await self._commands.add(facts.id, facts.tenant, fields)
        if not final:
            await self.ask_intake(facts)
        return BatchRecord.from_fields(fields)

    async def _manifest(self, batch_id: str) -> BatchFacts | None:
        try:
            return BatchFacts.from_json(await self._blobs.read(_name(batch_id, "manifest.json")))
        except NotFound:
            return None

    async def _is_on_disk(self, batch_id: str, tenant: str) -> bool:
        facts = await self._manifest(batch_id)
        return facts is not None and facts.tenant == tenant

    async def _final_fields(self, batch_id: str) -> dict[str, str]:
        try:
            content: Any = orjson.loads(await self._blobs.read(_name(batch_id, "state.json")))
        except NotFound:
            return {}
        return {str(name): str(text) for name, text in content.items()}

    async def _cancel_fields(self, batch_id: str) -> dict[str, str]:
        try:
            at = (await self._blobs.read(_name(batch_id, "cancel"))).decode()
        except NotFound:
            return {}
        return {"status": str(BatchStatus.CANCELLING), "cancelling_at": at}


def job_of(segment: str) -> str:
    """The batch a segment belongs to."""
    return segment.rpartition(".")[0]


def input_name(batch_id: str) -> str:
    """Blob name of the input as the batch keeps it."""
    return _name(batch_id, "input")


def index_name(segment: str) -> str:
    """Blob name of a segment's index."""
    batch_id, _, place = segment.rpartition(".")
    return _name(batch_id, f"index-{place}")


def lines_name(segment: str, kind: str) -> str:
    """Blob name of the lines of a closed segment; ``kind`` is ``output`` or ``error``."""
    batch_id, _, place = segment.rpartition(".")
    return _name(batch_id, f"{kind}-{place}.jsonl")


def table_name(segment: str) -> str:
    """Blob name of the table that says where the line of each row of a closed segment lies."""
    batch_id, _, place = segment.rpartition(".")
    return _name(batch_id, f"table-{place}")


def merged_name(batch_id: str, kind: str) -> str:
    """Blob name of the lines of all segments together."""
    return _name(batch_id, f"{kind}.jsonl")


def _name(batch_id: str, rest: str) -> str:
    return f"{_JOBS}{batch_id}/{rest}"


def _is_id(batch_id: str) -> bool:
    return batch_id.startswith("batch_") and batch_id[6:].isalnum() and batch_id.isascii()
