"""Publishing twice gives the same batch and the same files."""

from gateway.core.usage import Usage
from gateway.core.work import SegmentStatus
from gateway.schemas.batch import BatchStatus
from gateway.store.batch_record import Change, SegmentEnd
from tests.support.batch import chat_line
from tests.support.batch_plane import BatchPlane


async def _closed(plane: BatchPlane, closing: SegmentStatus) -> str:
    batch_id = await plane.start(chat_line("1", "x"), chat_line("2", "x"))
    await plane.blobs.put(f"jobs/{batch_id}/output-0.jsonl", b"{}\n")
    await plane.blobs.put(f"jobs/{batch_id}/error-0.jsonl", b"{}\n")
    end = SegmentEnd(1, 1, closing, Usage(3, 4))
    await plane.batches.close_segment(batch_id, f"{batch_id}.0", end)
    return batch_id


async def _publish(plane: BatchPlane, batch_id: str) -> None:
    record = await plane.batches.load(batch_id)
    assert record is not None
    await plane.publisher.publish(record)


async def test_twice_is_once(plane: BatchPlane) -> None:
    """A second finaliser, with the record of before, changes nothing."""
    batch_id = await _closed(plane, SegmentStatus.COMPLETED)
    stale = await plane.batches.load(batch_id)
    assert stale is not None
    await plane.publisher.publish(stale)
    batch = await plane.get(batch_id)
    await plane.publisher.publish(stale)
    assert await plane.get(batch_id) == batch
    assert batch["usage"]["total_tokens"] == 7
    files = (await plane.a.get("/v1/files", params={"purpose": "batch_output"})).json()["data"]
    assert {file["id"] for file in files} == {batch["output_file_id"], batch["error_file_id"]}


async def test_a_cancel_while_finalising_ends_as_cancelled(plane: BatchPlane) -> None:
    """The finished rows are in the output all the same."""
    batch_id = await _closed(plane, SegmentStatus.COMPLETED)
    only = (BatchStatus.IN_PROGRESS,)
    await plane.batches.move(
        batch_id, only, BatchStatus.FINALIZING, Change({"finalizing_at": 1_700_000_000})
    )
    answer = await plane.a.post(f"/v1/batches/{batch_id}/cancel")
    assert answer.json()["status"] == "cancelling"
    await _publish(plane, batch_id)
    batch = await plane.get(batch_id)
    assert (batch["status"], batch["request_counts"]["completed"]) == ("cancelled", 1)
    assert batch["output_file_id"]


async def test_a_segment_cancelled_by_an_operator_cancels_the_batch(plane: BatchPlane) -> None:
    """The batch says so with all the times the contract wants."""
    batch_id = await _closed(plane, SegmentStatus.CANCELLED)
    await _publish(plane, batch_id)
    assert (await plane.get(batch_id))["status"] == "cancelled"
