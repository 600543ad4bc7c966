"""A purged batch leaves nothing behind but its owner's files."""

import pytest

from gateway.batches.losses import Loss
from gateway.batches.purge import purge_batch
from gateway.core.errors import Conflict, NotFound
from gateway.store.keys import shard_of
from tests.support.batch import chat_line
from tests.support.batch_plane import HOUR, BatchPlane


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
    await plane.reconciler.step()
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


async def test_the_bill_outlives_the_batch(plane: BatchPlane) -> None:
    """Purged, then everything is lost, twice; purged during the repair, too: it counts once."""
    for early in (True, False):
        batch_id = await plane.start(chat_line("1", "x"), chat_line("2", "x"))
        await plane.run(10)
        await plane.finish()
        if early:
            await plane.reconciler.step()
        else:
            await plane.store.execute_command("FLUSHALL")
            await plane.reconciler._losses.begin()
            await plane.reconciler._look_at(batch_id, Loss(some=True, all=True))
        await purge_batch(plane.batches, plane.queue, batch_id)
        for lost in (False, True, True):
            if lost:
                await plane.store.execute_command("FLUSHALL")
            await plane.reconciler.look()
            meter = (await plane.queue.meter(shard_of("m"), "a", [HOUR]))["m"]
            assert meter["requests"] == (2 if early else 4)
            assert meter["prompt"] == (20 if early else 40)
