"""Live figures are sums over segments."""

from gateway.batches.progress import with_progress
from tests.support.batch import chat_line
from tests.support.batch_plane import BatchPlane


async def test_running_and_closed_segments_add_up(plane: BatchPlane) -> None:
    """A segment whose files are written counts as it was written, others as they stand."""
    batch_id = await plane.start(
        chat_line("1", "x"), chat_line("2", "x", model="n"), chat_line("3", "x", model="n")
    )
    await plane.run(1)
    await plane.finish()
    await plane.run(1, lambda row: False, model="n")
    record = await plane.batches.load(batch_id)
    assert record is not None
    live = await with_progress(record, plane.queue)
    assert (live.counts.total, live.counts.completed, live.counts.failed) == (3, 1, 1)
    assert live.usage.total == 12


async def test_lost_segments_count_as_nothing(plane: BatchPlane) -> None:
    """A batch whose segments Redis lost is still readable."""
    batch_id = await plane.start(chat_line("1", "x"))
    record = await plane.batches.load(batch_id)
    assert record is not None
    await plane.store.execute_command("FLUSHALL")
    live = await with_progress(record, plane.queue)
    assert (live.counts.total, live.counts.completed) == (1, 0)
