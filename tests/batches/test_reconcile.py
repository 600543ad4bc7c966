"""What Redis lost is put back from disk."""

import orjson

from gateway.store.keys import shard_of
from tests.support.batch import chat_line
from tests.support.batch_plane import BatchPlane


async def _lose_everything(plane: BatchPlane) -> None:
    await plane.store.execute_command("FLUSHALL")


async def test_a_lost_batch_runs_again_and_ends(plane: BatchPlane) -> None:
    """FLUSHALL in the middle: the batch is listed, validated and completed, each id once."""
    batch_id = await plane.start(*(chat_line(str(n), "x") for n in range(4)))
    await plane.run(2)
    await _lose_everything(plane)
    assert await plane.reconciler.step() == 1
    listed = (await plane.a.get("/v1/batches")).json()["data"]
    assert [batch["id"] for batch in listed] == [batch_id]
    assert await plane.intake.step()
    while await plane.run(2):
        pass
    await plane.finish()
    batch = await plane.get(batch_id)
    lines = await plane.lines(batch["output_file_id"])
    assert sorted(line["custom_id"] for line in lines) == ["0", "1", "2", "3"]


async def test_a_manifest_without_a_record(plane: BatchPlane) -> None:
    """A gateway that died right after the manifest: the batch is enqueued all the same."""
    batch_id = await plane.start(chat_line("1", "x"))
    await _lose_everything(plane)
    await plane.reconciler.step()
    assert (await plane.get(batch_id))["status"] == "validating"
    assert await plane.reconciler.step() == 0


async def test_a_record_that_nobody_was_asked_to_validate(plane: BatchPlane) -> None:
    """A gateway that died between record and intake: the batch is validated all the same."""
    content = orjson.dumps(chat_line("1", "x"))
    for cancelled in (False, True):
        batch_id = (await plane.create(await plane.upload(content)))["id"]
        if cancelled:
            await plane.a.post(f"/v1/batches/{batch_id}/cancel")
        await plane.store.execute_command("DEL", "gw:{sys}:intake")
        assert not await plane.intake.step()
        await plane.reconciler.step()
        assert await plane.intake.step()
        expected = "cancelled" if cancelled else "in_progress"
        assert (await plane.get(batch_id))["status"] == expected


async def test_a_running_validation_is_left_alone(plane: BatchPlane) -> None:
    """The reconciler takes no claim away from a dispatcher that is at work."""
    await plane.create(await plane.upload(orjson.dumps(chat_line("1", "x"))))
    assert await plane.batches.claim_intake(60_000) is not None
    await plane.reconciler.step()
    assert await plane.batches.claim_intake(60_000) is None


async def test_an_accepted_cancel_survives(plane: BatchPlane) -> None:
    """BAT-07: a cancelled batch does not come back to life."""
    batch_id = await plane.start(chat_line("1", "x"))
    await plane.a.post(f"/v1/batches/{batch_id}/cancel")
    cancelling = await plane.get(batch_id)
    await _lose_everything(plane)
    await plane.reconciler.step()
    await plane.intake.step()
    batch = await plane.get(batch_id)
    assert batch["status"] == "cancelled"
    assert batch["cancelling_at"] == cancelling["cancelling_at"]
    assert await plane.run(1) == 0


async def test_a_cancel_that_did_not_reach_the_queue(plane: BatchPlane) -> None:
    """BAT-07: the gateway died between state and queue: the reconciler stops the rows."""
    batch_id = await plane.start(chat_line("1", "x"))
    await plane.store.execute_command(
        "HSET", f"gw:{{{batch_id}}}:job", "status", "cancelling", "cancelling_at", "1700000000"
    )
    await plane.reconciler.step()
    assert await plane.run(1) == 0
    await plane.finish()
    assert (await plane.get(batch_id))["status"] == "cancelled"


async def test_a_lost_segment_is_enqueued_again(plane: BatchPlane) -> None:
    """A power loss undid the enqueue: the next pass notices."""
    batch_id = await plane.start(chat_line("1", "x"))
    await plane.store.execute_command("DEL", f"gw:{{{shard_of('m')}}}:s:{batch_id}.0")
    await plane.reconciler.step()
    assert await plane.intake.step()
    assert await plane.queue.segment(shard_of("m"), f"{batch_id}.0") is not None


async def test_an_ended_batch_stays_ended(plane: BatchPlane) -> None:
    """A final state that Redis forgot, or never got to disk, is made whole; nothing runs again."""
    batch_id = await plane.start(chat_line("1", "x"))
    await plane.run(1)
    await plane.finish()
    batch = await plane.get(batch_id)
    await plane.store.execute_command("HSET", f"gw:{{{batch_id}}}:job", "status", "finalizing")
    await plane.reconciler.step()
    assert await plane.get(batch_id) == batch
    await plane.blobs.delete(f"jobs/{batch_id}/state.json")
    plane.reconciler._settled.clear()
    await plane.reconciler.step()
    assert await plane.batches.is_final(batch_id)
    await _lose_everything(plane)
    assert await plane.reconciler.step() == 1
    assert (await plane.a.get("/v1/batches")).json()["data"] == [batch]
    assert not await plane.intake.step()
