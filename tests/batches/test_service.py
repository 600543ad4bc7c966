"""The service without HTTP."""

import asyncio

import orjson

from gateway.core.work import SegmentStatus
from gateway.schemas.batch import parse_batch_create
from gateway.store.keys import shard_of
from tests.support.batch import chat_line
from tests.support.batch_plane import CALLERS, BatchPlane


async def test_one_key_many_creates_at_once(plane: BatchPlane) -> None:
    """Ten clients with one idempotency key get one batch."""
    file_id = await plane.upload(orjson.dumps(chat_line("1", "x")))
    body = {"input_file_id": file_id, "endpoint": "/v1/chat/completions"}
    request = parse_batch_create(orjson.dumps({**body, "completion_window": "24h"}), 1)
    made = await asyncio.gather(
        *(plane.service.create(CALLERS["a"], request, "key") for _ in range(10))
    )
    assert len({record.id for record in made}) == 1
    assert await plane.batches.all_ids() == [made[0].id]


async def test_cancel_stops_the_segments_at_once(plane: BatchPlane) -> None:
    """The queue hands out no row after the answer to a cancel."""
    batch_id = await plane.start(chat_line("1", "x"))
    await plane.service.cancel(CALLERS["a"], batch_id)
    view = await plane.queue.segment(shard_of("m"), f"{batch_id}.0")
    assert view is not None
    assert view.closing is SegmentStatus.CANCELLED
    assert await plane.batches.known(batch_id)
    assert await plane.blobs.size(f"jobs/{batch_id}/cancel")
