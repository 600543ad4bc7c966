"""The state of a batch as the disk tells it."""

from pathlib import Path

from gateway.schemas.batch import BatchStatus, Counts
from gateway.store.batch_disk import BatchDisk
from gateway.store.batch_record import BatchFacts, BatchRecord, Change, PlannedSegment
from gateway.store.blobs import LocalBlobs

FACTS = BatchFacts(
    id="batch_1",
    tenant="a",
    key_id="k",
    endpoint="/v1/embeddings",
    input_file_id="file-1",
    completion_window="24h",
    created_at=5,
    expires_at=9,
    metadata=None,
    output_seconds=None,
    weight=1.0,
    models=("m",),
    idempotency=("k", "d"),
)


async def _status(disk: BatchDisk) -> BatchStatus:
    return BatchRecord.from_fields(await disk.fields("batch_1")).status


async def test_the_latest_state_wins(tmp_path: Path) -> None:
    """From the manifest over plan and cancel to the final state; each outlives Redis."""
    disk = BatchDisk(LocalBlobs(tmp_path))
    assert await disk.fields("batch_1") == {}
    await disk.save_facts(FACTS)
    assert await disk.ids() == ["batch_1"]
    assert await disk.facts("batch_1") == FACTS
    assert await _status(disk) is BatchStatus.VALIDATING
    segment = PlannedSegment("batch_1.0", "m", 3)
    await disk.save_plan("batch_1", Change({"in_progress_at": 6}, (segment,), counts=Counts(3)))
    record = BatchRecord.from_fields(await disk.fields("batch_1"))
    assert (record.status, record.segments) == (BatchStatus.IN_PROGRESS, (segment,))
    assert (record.times["in_progress_at"], record.counts.total) == (6, 3)
    await disk.save_cancel("batch_1", 7)
    record = BatchRecord.from_fields(await disk.fields("batch_1"))
    assert (record.status, record.segments) == (BatchStatus.CANCELLING, (segment,))
    assert not await disk.is_final("batch_1")
    final = await disk.fields("batch_1") | {"status": "cancelled"}
    await disk.save_final("batch_1", final)
    assert await disk.is_final("batch_1")
    assert await _status(disk) is BatchStatus.CANCELLED


async def test_finalizing_has_one_beginning(tmp_path: Path) -> None:
    """The time that names the files is set once."""
    disk = BatchDisk(LocalBlobs(tmp_path))
    assert [await disk.finalizing_at("batch_1", now) for now in (8, 9)] == [8, 8]
