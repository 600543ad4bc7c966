"""The end of a batch whose segments are all written: files, final state, state on disk."""

import hashlib
from collections.abc import Sequence

from gateway.batches.states import at
from gateway.core.clock import Clock
from gateway.core.usage import Usage
from gateway.core.work import SegmentStatus
from gateway.schemas.batch import BatchStatus, Counts
from gateway.schemas.file import BATCH_OUTPUT, MAX_EXPIRY
from gateway.store.batch_record import BatchRecord, Change, SegmentEnd
from gateway.store.batches import BatchStore, lines_name, merged_name
from gateway.store.blobs import BlobStore
from gateway.store.files import FileRecord, FileStore


class Publisher:
    """Makes the files visible and the state final; doing it twice changes nothing."""

    def __init__(
        self, batches: BatchStore, files: FileStore, blobs: BlobStore, clock: Clock
    ) -> None:
        self._batches = batches
        self._files = files
        self._blobs = blobs
        self._clock = clock

    async def publish(self, record: BatchRecord) -> None:
        """End a batch in which every segment is noted as closed."""
        record = await self._stamped(record)
        ends = [record.segment_end(segment.segment) for segment in record.segments]
        known = [end for end in ends if end is not None]
        total = sum(segment.rows for segment in record.segments)
        completed = sum(end.ok for end in known)
        change = Change(
            output_file_id=await self._file(record, "output", [end.ok for end in known]),
            error_file_id=await self._file(record, "error", [end.bad for end in known]),
            counts=Counts(total, completed, total - completed),
            usage=sum((end.usage for end in known), Usage()),
        )
        await self._end(record.id, known, change)
        await self._batches.save_final(record.id)

    async def _stamped(self, record: BatchRecord) -> BatchRecord:
        """The record with the time its files get: it was set once and never changes."""
        if record.status is BatchStatus.IN_PROGRESS:
            begun = await self._batches.finalizing_at(record.id, int(self._clock.now()))
            change = Change({"finalizing_at": begun})
            allowed = (BatchStatus.IN_PROGRESS,)
            await self._batches.move(record.id, allowed, BatchStatus.FINALIZING, change)
        return await self._batches.load(record.id) or record

    async def _end(self, batch_id: str, ends: Sequence[SegmentEnd], change: Change) -> None:
        closing = {end.closing for end in ends}
        to = BatchStatus.EXPIRED if SegmentStatus.EXPIRED in closing else BatchStatus.COMPLETED
        was = None
        if SegmentStatus.CANCELLED not in closing:
            was = await self._move(batch_id, BatchStatus.FINALIZING, to, change)
        else:
            await self._move(batch_id, BatchStatus.FINALIZING, BatchStatus.CANCELLING, Change())
        if was in {None, BatchStatus.CANCELLING}:
            await self._move(batch_id, BatchStatus.CANCELLING, BatchStatus.CANCELLED, change)

    async def _move(
        self, batch_id: str, only: BatchStatus, to: BatchStatus, change: Change
    ) -> BatchStatus | None:
        timed = change.timed({at(to): int(self._clock.now())})
        return await self._batches.move(batch_id, (only,), to, timed)

    async def _file(self, record: BatchRecord, kind: str, counts: Sequence[int]) -> str | None:
        names = [
            lines_name(segment.segment, kind)
            for segment, count in zip(record.segments, counts, strict=True)
            if count
        ]
        if not names:
            return None
        blob = names[0] if len(names) == 1 else await self._merge(record.id, kind, names)
        stamp = record.times.get("finalizing_at") or record.times["cancelling_at"]
        file = FileRecord(
            id=_file_id(record.id, kind, stamp),
            tenant=record.facts.tenant,
            bytes=await self._blobs.size(blob) or 0,
            created_at=stamp,
            filename=f"{record.id}_{kind}.jsonl",
            purpose=BATCH_OUTPUT,
            expires_at=stamp + (record.facts.output_seconds or MAX_EXPIRY),
            sha256=None,
        )
        await self._files.adopt(file, blob)
        return file.id

    async def _merge(self, batch_id: str, kind: str, names: Sequence[str]) -> str:
        merged = merged_name(batch_id, kind)
        writer = await self._blobs.create(merged)
        try:
            for name in names:
                async for piece in await self._blobs.stream(name):
                    await writer.write(piece)
            await writer.finish()
        finally:
            await writer.abort()
        return merged


def _file_id(batch_id: str, kind: str, stamp: int) -> str:
    digest = hashlib.sha256(f"{batch_id}/{kind}".encode()).hexdigest()
    return f"file-{stamp * 1000:012x}{digest[:12]}"
