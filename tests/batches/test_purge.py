"""A purged batch leaves nothing behind but its owner's files."""

import pytest

from gateway.batches.purge import purge_batch
from gateway.core.errors import Conflict, NotFound
from tests.support.batch import chat_line
from tests.support.batch_plane import BatchPlane


async def test_nothing_of_a_purged_batch_remains(plane: BatchPlane) -> None:
    """I10: no key, no folder, no batch for its owner; nothing puts it back; the output stays."""
    lines = [chat_line("1", "x"), chat_line("2", "x", model="n"), chat_line("3", "x")]
    batch_id = await plane.start(*lines)
    with pytest.raises(Conflict):
        await purge_batch(plane.batches, plane.queue, batch_id)
    for model in ("m", "n"):
        await plane.run(10, model=model)
    await plane.finish()
    output = (await plane.get(batch_id))["output_file_id"]
    await purge_batch(plane.batches, plane.queue, batch_id)
    keys = await plane.store.execute_command("KEYS", "*")
    assert not [key for key in keys if batch_id.encode() in key]
    assert not (plane.root / "jobs" / batch_id).exists()
    assert (await plane.a.get(f"/v1/batches/{batch_id}")).status_code == 404
    assert await plane.reconciler.step() == 0
    assert len(await plane.lines(output)) == 3
    with pytest.raises(NotFound):
        await purge_batch(plane.batches, plane.queue, batch_id)


async def test_a_failed_batch_can_be_purged(plane: BatchPlane) -> None:
    """It has no segments, and is gone all the same."""
    batch_id = await plane.start()
    await purge_batch(plane.batches, plane.queue, batch_id)
    assert (await plane.a.get("/v1/batches")).json()["data"] == []
