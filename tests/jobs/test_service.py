"""What a crash or a loss leaves, a client call repairs or does not mind."""

import pytest

from gateway.core.errors import StoreFull, StoreUnavailable
from gateway.core.work import Quota, SegmentStatus
from gateway.schemas.batch import BatchStatus
from gateway.store.job_commands import JobCommands
from gateway.store.keys import shard_of
from tests.jobs.test_segment import WANTED
from tests.support.batch_plane import CALLERS, BatchPlane, job_body


async def test_a_key_whose_job_was_never_written(
    plane: BatchPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a crash between claim and blob the next call makes the job, under the same id."""

    async def crash(*args: object) -> None:
        raise ConnectionAbortedError

    with monkeypatch.context() as patch:
        patch.setattr(plane.jobs, "create", crash)
        with pytest.raises(ConnectionAbortedError):
            await plane.job_service.create(CALLERS["a"], WANTED, "k")
    claimed = await plane.jobs.held_key("a", "k")
    record = await plane.job_service.create(CALLERS["a"], WANTED, "k")
    assert claimed is not None
    assert record.id == claimed.batch_id
    assert (await plane.job_service.create(CALLERS["a"], WANTED, "k")).id == record.id
    assert await plane.run(9) == 1


async def test_a_queue_that_goes_away_in_the_middle(
    plane: BatchPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job is accepted, as it is on disk, and put into the queue by the next pass."""

    async def away(*args: object) -> None:
        raise StoreUnavailable("The queue does not answer.")

    parts: tuple[tuple[object, str], ...] = (plane.queue, "enqueue_all"), (JobCommands, "add")
    for part, name in parts:
        with monkeypatch.context() as patch:
            patch.setattr(part, name, away)
            answer = await plane.a.post("/v1/jobs", json=job_body())
        assert answer.status_code == 202
    assert await plane.run(9) == 1
    assert await plane.job_keeper.step() == 1
    assert await plane.run(9) == 1
    assert await plane.job_keeper.step() == 0


async def test_a_queue_without_room_has_no_job(
    plane: BatchPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """503 to the client, and nothing of the job comes to life later."""

    async def full(*args: object) -> None:
        raise StoreFull("The queue's memory is full.")

    parts: tuple[tuple[object, str], ...] = (plane.queue, "enqueue_all"), (JobCommands, "add")
    for part, name in parts:
        with monkeypatch.context() as patch:
            patch.setattr(part, name, full)
            answer = await plane.a.post("/v1/jobs", json=job_body())
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "store_full")
    assert await plane.job_keeper.step() == 0
    assert await plane.run(9) == 0
    assert (await plane.a.get("/v1/jobs")).json()["data"] == []


async def test_cancel_of_a_job_that_the_queue_lost(plane: BatchPlane) -> None:
    """It is closed there, too: nothing runs, and it is cancelled after another loss."""
    job_id = (await plane.job())["id"]
    await plane.store.execute_command("FLUSHALL")
    assert (await plane.get_job(job_id))["status"] == "queued"
    answer = await plane.a.post(f"/v1/jobs/{job_id}/cancel")
    assert answer.json()["status"] == BatchStatus.CANCELLED
    assert await plane.run(9) == 0
    view = await plane.queue.segment(shard_of("m"), f"{job_id}.0")
    assert view is not None
    assert view.closing is SegmentStatus.CANCELLED
    await plane.store.execute_command("FLUSHALL")
    assert await plane.job_keeper.step() == 0
    assert (await plane.get_job(job_id))["status"] == "cancelled"


async def test_a_cancel_wins_over_a_result_on_its_way(plane: BatchPlane) -> None:
    """The row was committed but the job not ended: it stays cancelled."""
    job_id = (await plane.job())["id"]
    await plane.run(9)
    assert (await plane.get_job(job_id))["status"] == "in_progress"
    assert (await plane.a.post(f"/v1/jobs/{job_id}/cancel")).json()["status"] == "cancelled"
    await plane.finish()
    assert (await plane.get_job(job_id))["status"] == "cancelled"


async def test_a_quota_that_is_used_up(plane: BatchPlane) -> None:
    """429 naming the limit, and nothing is left to be run later."""
    plane.quota = Quota(rows=2)
    for text in ("one", "two"):
        await plane.job(text)
    answer = await plane.a.post("/v1/jobs", json=job_body())
    assert (answer.status_code, answer.json()["error"]["code"]) == (429, "request_limit_exceeded")
    await plane.store.execute_command("FLUSHALL")
    assert await plane.job_keeper.step() == 2
    assert len((await plane.a.get("/v1/jobs")).json()["data"]) == 2
