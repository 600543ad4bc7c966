"""Batches on disk and in Redis."""

import orjson
import pytest

from gateway.core.errors import NotFound, StoreUnavailable
from gateway.schemas.batch import BatchStatus
from gateway.store.batch_record import Change
from gateway.store.batches import BatchStore, index_name, job_of, lines_name
from gateway.store.blobs import LocalBlobs
from gateway.store.client import connect
from gateway.store.job_commands import JobCommands
from tests.support.batch import chat_line
from tests.support.batch_plane import BatchPlane


def test_names() -> None:
    """All names of a segment follow from its id."""
    assert job_of("batch_1.0") == "batch_1"
    assert index_name("batch_1.7") == "jobs/batch_1/index-7"
    assert lines_name("batch_1.7", "output") == "jobs/batch_1/output-7.jsonl"


async def test_a_move_happens_only_from_an_allowed_state(plane: BatchPlane) -> None:
    """The state before is told either way; an unknown batch has none."""
    batch_id = await plane.start(chat_line("1", "x"))
    to, allowed = BatchStatus.FINALIZING, (BatchStatus.IN_PROGRESS,)
    change = Change({"finalizing_at": 5})
    assert await plane.batches.move(batch_id, allowed, to, change) is BatchStatus.IN_PROGRESS
    later = Change({"finalizing_at": 6})
    assert await plane.batches.move(batch_id, allowed, to, later) is BatchStatus.FINALIZING
    record = await plane.batches.load(batch_id)
    assert record is not None
    assert record.times["finalizing_at"] == 5
    assert await plane.batches.move("batch_none", allowed, to, change) is None


async def test_no_redis_no_batch(plane: BatchPlane) -> None:
    """A create is refused before anything is written when Redis does not answer."""
    batch_id = await plane.start(chat_line("1", "x"))
    record = await plane.batches.load(batch_id)
    assert record is not None
    away = connect(f"unix://{plane.root}/nowhere.sock")
    store = BatchStore(JobCommands(away), LocalBlobs(plane.root / "other"))
    with pytest.raises(StoreUnavailable):
        await store.create(record.facts, "jobs/x")
    assert await store.all_ids() == []
    await away.aclose()


@pytest.mark.parametrize("part", ["add", "ask_intake"])
async def test_redis_goes_away_in_the_middle_of_a_create(
    plane: BatchPlane, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    """What is on disk is accepted and runs once: a client that was refused would send it again."""

    async def away(*args: object) -> None:
        raise StoreUnavailable("The queue does not answer.")

    file_id = await plane.upload(orjson.dumps(chat_line("1", "x")))
    with monkeypatch.context() as patch:
        patch.setattr(JobCommands, part, away)
        batch = await plane.create(file_id)
    assert not await plane.intake.step()
    await plane.reconciler.step()
    assert await plane.intake.step()
    assert await plane.run(9) == 1
    await plane.finish()
    assert (await plane.get(batch["id"]))["status"] == "completed"
    assert await plane.batches.all_ids() == [batch["id"]]


async def test_putting_back_never_overwrites(plane: BatchPlane) -> None:
    """A record that is there stays as it is; a folder without a manifest is no batch."""
    batch_id = await plane.start(chat_line("1", "x"))
    await plane.batches.put_back(batch_id)
    assert (await plane.get(batch_id))["status"] == "in_progress"
    assert await plane.batches.put_back("batch_none") is None


async def test_ids_that_are_no_ids(plane: BatchPlane) -> None:
    """Nothing but a server-made id is looked up."""
    for batch_id in ("batch_../x", "x", "batch_", "batch_{a}"):
        with pytest.raises(NotFound):
            await plane.batches.get("a", batch_id)
