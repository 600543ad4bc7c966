"""From the commit of its row to the end of a job."""

import asyncio

import pytest

from gateway.core.errors import NotFound
from gateway.store.job_files import end_blob, folder_of, job_blob
from gateway.store.keys import shard_of
from tests.support.batch_plane import BatchPlane


async def test_a_good_and_a_bad_answer(plane: BatchPlane) -> None:
    """Completed with its usage; failed with the target's error."""
    good = (await plane.job("good"))["id"]
    await plane.run(9)
    bad = (await plane.job("bad"))["id"]
    await plane.run(9, lambda row: False)
    await plane.finish()
    job = await plane.get_job(good)
    assert (job["status"], job["error"]) == ("completed", None)
    assert job["usage"]["total_tokens"] == 12
    assert job["completed_at"] >= job["created_at"]
    job = await plane.get_job(bad)
    assert (job["status"], job["error"]) == ("failed", {"code": None, "message": "<p>no</p>"})
    assert job["failed_at"] >= job["created_at"]


async def test_a_job_past_its_deadline(plane: BatchPlane) -> None:
    """Expired, with a code that says so; it never runs."""
    job_id = (await plane.job(deadline=1))["id"]
    await asyncio.sleep(1.1)
    await plane.queue.tick(shard_of("m"), 9)
    assert await plane.run(9) == 0
    await plane.finish()
    job = await plane.get_job(job_id)
    assert (job["status"], job["error"]["code"]) == ("expired", "deadline_exceeded")


async def test_a_job_that_runs_at_its_deadline(plane: BatchPlane) -> None:
    """Expired too, and its error says that it ran."""
    job_id = (await plane.job(deadline=1))["id"]
    assert await plane.run(9, commit=False) == 1
    await asyncio.sleep(1.1)
    for _ in range(2):
        await plane.queue.tick(shard_of("m"), 9, grace_ms=1)
        await asyncio.sleep(0.01)
    await plane.finish()
    error = (await plane.get_job(job_id))["error"]
    assert error == {
        "code": "deadline_exceeded",
        "message": "The job was running at its deadline and was stopped.",
    }


@pytest.mark.parametrize("broken", ["end", "save"])
async def test_a_crash_while_finishing(
    plane: BatchPlane, broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever step a finisher died at, the next one ends the job, also on disk."""
    job_id = (await plane.job())["id"]
    await plane.run(9)

    async def crash(*args: object) -> None:
        raise ConnectionAbortedError

    with monkeypatch.context() as patch:
        patch.setattr(plane.jobs, broken, crash)
        with pytest.raises(ConnectionAbortedError):
            await plane.finishing.step()
    shard = shard_of("m")
    await plane.store.execute_command("ZADD", f"gw:{{{shard}}}:fin", "XX", 0, f"{job_id}.0")
    await plane.finish()
    await plane.store.execute_command("FLUSHALL")
    assert (await plane.get_job(job_id))["status"] == "completed"


async def test_many_jobs_and_two_finishers(plane: BatchPlane) -> None:
    """Each ends once with its own answer; its segment is soon forgotten."""
    ids = [(await plane.job(f"say {n}"))["id"] for n in range(20)]
    while await plane.run(64):
        pass
    other = plane.another_finishing("other")
    while any(await asyncio.gather(plane.finishing.step(), other.step())):
        pass
    for number, job_id in enumerate(ids):
        body = (await plane.a.get(f"/v1/jobs/{job_id}/result")).json()
        assert body["said"]["messages"][0]["content"] == f"say {number}"
        key = f"gw:{{{shard_of('m')}}}:s:{job_id}.0"
        assert 0 < await plane.store.execute_command("TTL", key) <= 600


async def test_redis_lost_everything_before_the_end(plane: BatchPlane) -> None:
    """A record that is gone while the segment is there is put back to be ended."""
    job_id = (await plane.job())["id"]
    await plane.run(9)
    await plane.store.execute_command("DEL", f"gw:{{{job_id}}}:job")
    await plane.finish()
    assert (await plane.get_job(job_id))["status"] == "completed"


async def test_a_job_without_files_holds_up_nothing(plane: BatchPlane) -> None:
    """Its segment is closed and that is all."""
    job_id = (await plane.job())["id"]
    await plane.run(9)
    await plane.store.execute_command("DEL", f"gw:{{{job_id}}}:job")
    await plane.blobs.delete(job_blob(job_id))
    await plane.finish()
    assert not await plane.finishing.step()
    assert (await plane.a.get(f"/v1/jobs/{job_id}")).status_code == 404


async def test_a_failed_job_whose_line_is_gone(plane: BatchPlane) -> None:
    """Failed all the same."""
    job_id = (await plane.job())["id"]
    await plane.run(9, lambda row: False)
    for name in await plane.blobs.list(folder_of(job_id)):
        if name not in {job_blob(job_id), end_blob(job_id)}:
            await plane.blobs.delete(name)
    await plane.finish()
    assert (await plane.get_job(job_id))["error"]["code"] == "internal_error"
    with pytest.raises(NotFound):
        await plane.jobs.line(await plane.jobs.get("a", job_id))
