"""From validating to in_progress or failed, also when a dispatcher dies on the way."""

import asyncio
from contextlib import suppress
from pathlib import Path
from time import process_time
from typing import Any

import orjson
import pytest

from gateway.batches import ingest_run
from gateway.batches.ingest import IngestRequest, Summary
from gateway.batches.intake import Intake, IntakeRule
from gateway.core.errors import HeadwayError
from gateway.core.work import Quota
from gateway.store.keys import shard_of
from tests.support.batch import chat_line
from tests.support.batch_plane import MODELS, BatchPlane, eventually
from tests.support.contract import sample


async def test_faulty_input_fails_the_batch(plane: BatchPlane) -> None:
    """BAT-10: failed with code, line, message and param per line; nothing runs."""
    batch = await plane.create(await plane.upload(sample("s5_faulty_lines", MODEL="m")))
    assert await plane.intake.step()
    batch = await plane.get(batch["id"])
    assert batch["status"] == "failed"
    assert [error["line"] for error in batch["errors"]["data"]] == [2, 3, 4, 5, 6]
    assert batch["output_file_id"] is batch["error_file_id"] is None
    assert await plane.run(10) == 0
    assert not await plane.intake.step()


async def test_equal_custom_ids(plane: BatchPlane) -> None:
    """BAT-09: lines 2 and 5 share an id: failed, line 5, message with the id."""
    ids = ["a", "twice", "c", "d", "twice"]
    batch = await plane.get(await plane.start(*(chat_line(name, "x") for name in ids)))
    (error,) = batch["errors"]["data"]
    assert (batch["status"], error["code"], error["line"]) == ("failed", "duplicate_custom_id", 5)
    assert "twice" in error["message"]
    assert await plane.run(10) == 0


async def test_no_lines(plane: BatchPlane) -> None:
    """BAT-10: an empty file uploads, its batch fails."""
    batch = await plane.get(await plane.start())
    assert batch["status"] == "failed"
    assert batch["errors"]["data"][0]["code"] == "empty_file"


async def test_mixed_models_become_segments(plane: BatchPlane) -> None:
    """One segment per model, in the shard of the model; the batch names no single model."""
    batch_id = await plane.start(chat_line("1", "x"), chat_line("2", "x", model="n"))
    for place, model in enumerate(MODELS):
        view = await plane.queue.segment(shard_of(model), f"{batch_id}.{place}")
        assert view is not None
        assert (view.n, view.model) == (1, model)
    assert (await plane.get(batch_id))["model"] is None


async def test_more_than_the_quota_fails(plane: BatchPlane) -> None:
    """OpenAI's code and words; nothing of it runs, and the quota is free again afterwards."""
    lines = [chat_line("1", "x"), chat_line("2", "x", model="n"), chat_line("3", "x", model="n")]
    content = b"".join(orjson.dumps(line) + b"\n" for line in lines)
    for quota, code in (
        (Quota(rows=1), "request_limit_exceeded"),
        (Quota(tokens=1), "token_limit_exceeded"),
    ):
        batch = await plane.create(await plane.upload(content))
        args = plane.batches, plane.blobs, plane.queue, MODELS, plane.clock
        assert await Intake(*args, IntakeRule(quota={"a": quota}.__getitem__)).step()
        batch = await plane.get(batch["id"])
        (error,) = batch["errors"]["data"]
        assert (batch["status"], error["code"], error["line"]) == ("failed", code, None)
        assert "limit reached for" in error["message"]
        for model in MODELS:
            assert await plane.run(10, model=model) == 0
            assert await plane.queue.audit(shard_of(model)) == []
            assert (await plane.queue.stats(shard_of(model)))["segments"] == 0


async def test_a_cancel_during_validation_leaves_nothing_behind(
    plane: BatchPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Segments that were enqueued and never started are forgotten."""
    batch = await plane.create(await plane.upload(orjson.dumps(chat_line("1", "x"))))
    enqueue = plane.queue.enqueue

    async def cancelled(*args: Any) -> bool:
        await plane.a.post(f"/v1/batches/{batch['id']}/cancel")
        return await enqueue(*args)

    monkeypatch.setattr(plane.queue, "enqueue", cancelled)
    assert await plane.intake.step()
    assert (await plane.get(batch["id"]))["status"] == "cancelled"
    assert await plane.queue.segment(shard_of("m"), f"{batch['id']}.0") is None
    assert await plane.run(10) == 0
    assert await plane.queue.audit(shard_of("m")) == []


async def test_another_takes_over_after_a_crash(plane: BatchPlane) -> None:
    """A claim that ran out is taken again and comes to the same end; rows are enqueued once."""
    batch = await plane.create(await plane.upload(orjson.dumps(chat_line("1", "x"))))
    assert await plane.batches.claim_intake(30) == batch["id"]
    assert not await plane.intake.step()
    await asyncio.sleep(0.05)
    assert await plane.intake.step()
    assert await plane.run(10) == 1
    record = await plane.batches.load(batch["id"])
    assert record is not None
    await plane.batches.ask_intake(record.facts)
    assert await plane.intake.step()
    assert await plane.run(10) == 0
    await plane.finish()
    assert (await plane.get(batch["id"]))["status"] == "completed"


async def test_a_claim_is_held_on_to(plane: BatchPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    """A validation that takes longer than its claim is not begun by another dispatcher."""
    begun = asyncio.Event()

    async def slowly(request: IngestRequest) -> Summary:
        begun.set()
        await asyncio.sleep(1.2)
        return await ingest_run.run_ingest(request)

    monkeypatch.setattr("gateway.batches.intake.run_ingest", slowly)
    await plane.create(await plane.upload(orjson.dumps(chat_line("1", "x"))))
    intake = Intake(plane.batches, plane.blobs, plane.queue, MODELS, plane.clock, IntakeRule(800))
    step = asyncio.create_task(intake.step())
    await begun.wait()
    while not step.done():
        assert await plane.batches.claim_intake(1) is None or step.done()
        await asyncio.sleep(0.02)
    assert await step


async def test_a_crash_between_move_and_enqueue(plane: BatchPlane) -> None:
    """in_progress without segments in the queue is completed by the next claim."""
    batch_id = await plane.start(chat_line("1", "x"))
    await plane.store.execute_command("DEL", f"gw:{{{shard_of('m')}}}:s:{batch_id}.0")
    record = await plane.batches.load(batch_id)
    assert record is not None
    await plane.batches.ask_intake(record.facts)
    await plane.intake.step()
    assert await plane.queue.segment(shard_of("m"), f"{batch_id}.0") is not None


async def test_the_loop_goes_on_after_a_fault(plane: BatchPlane) -> None:
    """A batch whose input is unreadable does not stop the next one."""
    first = await plane.create(await plane.upload(orjson.dumps(chat_line("1", "x"))))
    await plane.blobs.delete(f"jobs/{first['id']}/input")
    second = await plane.create(await plane.upload(orjson.dumps(chat_line("1", "x"))))
    intake = Intake(plane.batches, plane.blobs, plane.queue, MODELS, plane.clock)
    loop = asyncio.create_task(intake.run())

    async def running() -> bool:
        return bool((await plane.get(second["id"]))["status"] == "in_progress")

    await eventually(running)
    loop.cancel()
    await asyncio.gather(loop, return_exceptions=True)
    assert (await plane.get(first["id"]))["status"] == "validating"


async def test_an_unreadable_input_fails_when_its_window_is_over(plane: BatchPlane) -> None:
    """No batch stays in validating for ever."""
    content = orjson.dumps(chat_line("1", "x"))
    batch = await plane.create(await plane.upload(content), completion_window="1s")
    await plane.blobs.delete(f"jobs/{batch['id']}/input")
    loop = asyncio.create_task(_insist(plane))

    async def failed() -> bool:
        return bool((await plane.get(batch["id"]))["status"] == "failed")

    await eventually(failed)
    await loop


@pytest.mark.parametrize("size", [1, 600_000])
async def test_a_file_that_ends_its_reader_fails_after_three_tries(
    plane: BatchPlane, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, size: int
) -> None:
    """Small or large, the batch does not stay in validating, and the next one is taken."""
    tried = tmp_path / "tried"
    tried.touch()

    def broken(_: IngestRequest) -> None:
        with tried.open("a") as file:
            file.write("x")
        raise MemoryError

    killed = f"open({str(tried)!r}, 'a').write('x'); import os; os.kill(os.getpid(), 9)"
    batch = await plane.create(await plane.upload(orjson.dumps(chat_line("1", "x" * size))))
    rule = IntakeRule(retry_seconds=0.01)
    intake = Intake(plane.batches, plane.blobs, plane.queue, MODELS, plane.clock, rule)
    with monkeypatch.context() as patch:
        patch.setattr(ingest_run, "ingest", broken)
        patch.setattr(ingest_run, "_CHILD", ("-c", killed))
        assert await intake.step()
    batch = await plane.get(batch["id"])
    (error,) = batch["errors"]["data"]
    assert (batch["status"], error["code"]) == ("failed", "invalid_file")
    assert tried.read_text() == "xxx"
    await plane.start(chat_line("1", "x"))
    assert await plane.run(9) == 1


async def test_many_small_batches_are_validated_soon(plane: BatchPlane) -> None:
    """None of them waits for a process to start: a hundred cost less than ten such starts."""
    file_id = await plane.upload(orjson.dumps(chat_line("1", "x")))
    for _ in range(100):
        await plane.create(file_id)
    started = process_time()
    for _ in range(100):
        assert await plane.intake.step()
    assert process_time() - started < 3
    assert await plane.run(200) == 100


async def _insist(plane: BatchPlane) -> None:
    """Claim and try again until the batch has ended."""
    (batch_id,) = await plane.batches.all_ids()
    intake = Intake(plane.batches, plane.blobs, plane.queue, MODELS, plane.clock, IntakeRule(50))
    while (record := await plane.batches.load(batch_id)) and not record.ended:
        with suppress(HeadwayError):
            await intake.step()
        await asyncio.sleep(0.02)


async def test_a_line_nested_too_deeply_fails_the_batch(plane: BatchPlane) -> None:
    """What could be read and never sent is found before anything runs."""
    line = orjson.dumps(chat_line("deep", "x"))[:-2] + b',"x":' + b"[" * 300 + b"]" * 300 + b"}}"
    content = orjson.dumps(chat_line("a", "x")) + b"\n" + line + b"\n"
    batch = await plane.create(await plane.upload(content))
    assert await plane.intake.step()
    batch = await plane.get(batch["id"])
    (error,) = batch["errors"]["data"]
    assert (batch["status"], error["code"], error["line"]) == ("failed", "invalid_json_line", 2)
    assert "nested too deeply" in error["message"]
