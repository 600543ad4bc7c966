"""What Redis lost is put back from disk."""

import orjson
import pytest

from gateway.core.errors import StoreUnavailable
from gateway.store.keys import shard_of
from tests.support.batch import chat_line
from tests.support.batch_plane import HOUR, BatchPlane


async def _lose_everything(plane: BatchPlane) -> None:
    await plane.store.execute_command("FLUSHALL")


async def _meter(plane: BatchPlane) -> dict[str, int]:
    meter = await plane.queue.meter(shard_of("m"), "a", [HOUR])
    return {name: amount for name, amount in meter["m"].items() if amount}


async def _restored(plane: BatchPlane) -> None:
    assert await plane.reconciler.step() == 1
    while await plane.intake.step():
        pass


async def test_a_lost_batch_goes_on_where_it_was(plane: BatchPlane) -> None:
    """FLUSHALL in the middle: listed again; rows with a line on disk do not run again."""
    batch_id = await plane.start(*(chat_line(str(n), "x") for n in range(6)))
    before = await plane.get(batch_id)
    await plane.run(2)
    await plane.run(2, commit=False)
    await _lose_everything(plane)
    assert (await plane.a.get(f"/v1/batches/{batch_id}")).status_code == 503
    await _restored(plane)
    listed = (await plane.a.get("/v1/batches")).json()["data"]
    assert [batch["id"] for batch in listed] == [batch_id]
    batch = await plane.get(batch_id)
    assert batch["request_counts"] == {"total": 6, "completed": 4, "failed": 0}
    assert batch["in_progress_at"] == before["in_progress_at"]
    assert await plane.run(9) == 2
    await plane.finish()
    batch = await plane.get(batch_id)
    lines = await plane.lines(batch["output_file_id"])
    assert sorted(line["custom_id"] for line in lines) == list("012345")
    assert await _meter(plane) == {"requests": 6, "prompt": 60, "completion": 12}


async def test_a_second_loss_during_the_repair(plane: BatchPlane) -> None:
    """Wherever it falls, the next look begins again; nothing is counted twice."""
    batch_id = await plane.start(*(chat_line(str(n), "x") for n in range(4)))
    await plane.run(2)
    for _ in range(2):
        await _lose_everything(plane)
        await plane.reconciler.look()
    await plane.intake.step()
    await _lose_everything(plane)
    await plane.reconciler.look()
    await plane.intake.step()
    epoch = await plane.batches.epoch()
    await plane.reconciler.look()
    assert await plane.batches.epoch() == epoch is not None
    assert await plane.run(9) == 2
    await plane.finish()
    assert (await plane.get(batch_id))["status"] == "completed"
    assert await _meter(plane) == {"requests": 4, "prompt": 40, "completion": 8}


async def test_a_loss_while_it_is_finalised(
    plane: BatchPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the files and the final state: the same two files, and no third one."""
    batch_id = await plane.start(*(chat_line(str(n), "x") for n in range(4)))
    await plane.run(4, lambda row: row.index > 0)
    with monkeypatch.context() as patch:
        patch.setattr(plane.publisher, "_end", _away)
        with pytest.raises(StoreUnavailable):
            await plane.finish()
    files = {file["id"] for file in (await plane.a.get("/v1/files")).json()["data"]}
    await _lose_everything(plane)
    await _restored(plane)
    await plane.finish()
    batch = await plane.get(batch_id)
    assert batch["status"] == "completed"
    listed = {file["id"] for file in (await plane.a.get("/v1/files")).json()["data"]}
    assert listed == files
    assert len(listed) == 3
    assert await _meter(plane) == {"requests": 4, "failed": 1, "prompt": 30, "completion": 6}


async def _away(*_: object) -> None:
    raise StoreUnavailable("gone")


async def test_lines_that_were_not_committed_count(plane: BatchPlane) -> None:
    """A dispatcher or the server died between line and commit: the row is done."""
    await plane.start(*(chat_line(str(n), "x") for n in range(4)))
    await plane.reconciler.step()
    await plane.intake.step()
    await plane.run(3, commit=False)
    plane.reconciler._losses._seen = (await plane.batches.epoch(), "another server")
    await plane.reconciler.look()
    await plane.intake.step()
    assert await _meter(plane) == {"requests": 3, "prompt": 30, "completion": 6}
    assert await plane.run(9) == 1


async def test_a_manifest_without_a_record(plane: BatchPlane) -> None:
    """A gateway that died right after the manifest: the batch is enqueued all the same."""
    batch_id = (await plane.create(await plane.upload(b"{}")))["id"]
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
    await plane.finish()
    batch = await plane.get(batch_id)
    assert batch["status"] == "cancelled"
    assert batch["cancelling_at"] == cancelling["cancelling_at"]
    assert await plane.run(1) == 0


async def test_a_cancelled_batch_keeps_what_was_done(plane: BatchPlane) -> None:
    """BAT-07: lost while its cancel was under way: results stay, the rest is cancelled."""
    batch_id = await plane.start(*(chat_line(str(n), "x") for n in range(3)))
    await plane.run(2)
    await plane.a.post(f"/v1/batches/{batch_id}/cancel")
    await _lose_everything(plane)
    await _restored(plane)
    assert await plane.run(9) == 0
    await plane.finish()
    batch = await plane.get(batch_id)
    assert batch["status"] == "cancelled"
    assert batch["request_counts"] == {"total": 3, "completed": 2, "failed": 1}
    assert await _meter(plane) == {"requests": 2, "prompt": 20, "completion": 4}


async def test_an_idempotency_key_survives(plane: BatchPlane) -> None:
    """Lost between create and answer: the client's retry gets the batch, never a second one."""
    file_id = await plane.upload(b"{}")
    body = {"input_file_id": file_id, "endpoint": "/v1/completions", "completion_window": "24h"}
    headers = {"idempotency-key": "once"}
    first = (await plane.a.post("/v1/batches", json=body, headers=headers)).json()["id"]
    for repair in (False, True):
        await _lose_everything(plane)
        if repair:
            await plane.reconciler.step()
        again = await plane.a.post("/v1/batches", json=body, headers=headers)
        assert again.json()["id"] == first
    assert await plane.batches.all_ids() == [first]


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
    assert await _meter(plane) == {"requests": 1, "prompt": 10, "completion": 2}
    for _ in range(2):
        plane.reconciler._settled.clear()
        await plane.reconciler.step()
    assert await _meter(plane) == {"requests": 1, "prompt": 10, "completion": 2}


async def test_an_ended_batch_that_a_power_loss_reopened(plane: BatchPlane) -> None:
    """Queue and record fell back behind the final state: billed as delivered, nothing runs."""
    batch_id = await plane.start(*(chat_line(str(n), "x") for n in range(4)))
    await plane.run(2)
    before = {key: await plane.store.dump(key) for key in await plane.store.keys("*")}
    await plane.run(2)
    await plane.finish()
    batch = await plane.get(batch_id)
    await _lose_everything(plane)
    for key, value in before.items():
        await plane.store.restore(key, 0, value or b"")
    await plane.reconciler.step()
    assert await plane.get(batch_id) == batch
    assert await _meter(plane) == {"requests": 4, "prompt": 40, "completion": 8}
    assert await plane.run(9) == 0
