"""What Redis lost or a crash left half made is put back; what ended stays ended."""

from dataclasses import replace

from gateway.core.ids import new_ordered_id
from gateway.jobs.purge import purge_job
from gateway.jobs.put_back import KEPT_SECONDS, JobKeeper
from gateway.jobs.segment import input_line
from gateway.store.job_files import folder_of
from gateway.store.keys import shard_of
from tests.jobs.test_segment import WANTED
from tests.store.test_jobs import facts
from tests.support.batch_plane import HOUR, BatchPlane


async def test_a_crash_between_disk_and_queue(plane: BatchPlane) -> None:
    """A job that is only on disk is run, and listed."""
    now = int(plane.clock.now() * 1000)
    job = replace(facts(), id=new_ordered_id("job", now), created_ms=now, window_ms=60_000)
    job = replace(job, delay_ms=0)
    await plane.jobs.create(job, input_line(job.id, WANTED))
    await plane.store.execute_command("FLUSHALL")
    assert await plane.job_keeper.step() == 1
    assert await plane.job_keeper.step() == 0
    assert await plane.run(9) == 1
    await plane.finish()
    assert [record.id for record in (await plane.jobs.page("a", 9, None))[0]] == [job.id]
    assert (await plane.get_job(job.id))["status"] == "completed"


async def test_everything_is_lost(plane: BatchPlane) -> None:
    """Ended jobs are listed with the same result and do not run; the others do."""
    done = (await plane.job("done"))["id"]
    await plane.run(9)
    await plane.finish()
    before = await plane.get_job(done)
    answer = await plane.a.get(f"/v1/jobs/{done}/result")
    waiting = (await plane.job("waiting"))["id"]
    await plane.job_keeper.step()
    await plane.store.execute_command("FLUSHALL")
    assert await plane.job_keeper.step() == 1
    assert await plane.get_job(done) == before
    assert (await plane.a.get(f"/v1/jobs/{done}/result")).content == answer.content
    listed = (await plane.a.get("/v1/jobs")).json()["data"]
    assert [job["id"] for job in listed] == [waiting, done]
    assert await plane.run(9) == 1


async def test_the_bill_of_jobs_is_made_again(plane: BatchPlane) -> None:
    """Ended jobs and results that were not committed count once, over two losses."""
    await plane.job("done")
    await plane.run(9)
    await plane.finish()
    await plane.job("written")
    await plane.run(9, commit=False)
    await plane.job("bad")
    await plane.run(9, lambda _: False)
    await plane.finish()
    for _ in range(2):
        await plane.store.execute_command("FLUSHALL")
        for _ in range(2):
            await plane.job_keeper.look()
        assert await plane.run(9) == 0
        await plane.finish()
        meter = (await plane.queue.meter(shard_of("m"), "a", [HOUR]))["m"]
        assert (meter["requests"], meter["failed"], meter["prompt"]) == (3, 1, 20)
    states = [record.status for record in (await plane.jobs.page("a", 9, None))[0]]
    assert states == ["failed", "completed", "completed"]


async def test_the_bill_outlives_removed_jobs(plane: BatchPlane) -> None:
    """Deleted, purged, expired, deleted during the repair: each counts once, over two losses."""
    ids = [(await plane.job(text))["id"] for text in ("deleted", "purged", "early", "expired")]
    await plane.run(9)
    await plane.finish()
    await plane.job_keeper.look()
    deleted, purged, early, expired = ids
    assert (await plane.a.delete(f"/v1/jobs/{deleted}")).status_code == 200
    await purge_job(plane.jobs, plane.queue, purged)
    keeper = plane.job_keeper
    for again in range(2):
        await plane.store.execute_command("FLUSHALL")
        if not again:
            loss = await keeper._losses.begin()
            for folder in await plane.jobs.folders():
                await keeper._look(folder, loss)
            assert (await plane.a.delete(f"/v1/jobs/{early}")).status_code == 200
        else:
            await plane.jobs.remove_folder(folder_of(expired))
        for _ in range(2):
            await keeper.look()
            meter = (await plane.queue.meter(shard_of("m"), "a", [HOUR]))["m"]
            assert (meter["requests"], meter["prompt"]) == (4, 40)
    assert await plane.jobs.folders() == []


async def test_a_result_that_a_power_loss_undid(plane: BatchPlane) -> None:
    """The line is there, the commit is not: it is committed, and the call is not made again."""
    await plane.job_keeper.look()
    job_id = (await plane.job("once"))["id"]
    await plane.run(9, commit=False)
    assert await plane.job_keeper.step() == 0
    assert (await plane.get_job(job_id))["status"] == "in_progress"
    plane.job_keeper._losses._seen = (await plane.jobs.epoch(), "another server")
    await plane.job_keeper.look()
    await plane.finish()
    assert (await plane.get_job(job_id))["status"] == "completed"
    meter = (await plane.queue.meter(shard_of("m"), "a", [HOUR]))["m"]
    assert meter["requests"] == 1


async def test_jobs_in_the_queue_are_left_alone(plane: BatchPlane) -> None:
    """A pass over waiting, leased and finished jobs changes nothing."""
    for text in ("one", "two", "three"):
        await plane.job(text)
    await plane.run(1)
    await plane.finish()
    for _ in range(12):
        assert await plane.job_keeper.step() == 0
    assert await plane.run(9) == 2


async def test_jobs_of_long_ago_are_removed(plane: BatchPlane) -> None:
    """The folder goes 60 days after its time; younger ones stay."""
    now = plane.clock.now()
    for age in (KEPT_SECONDS + 2000, KEPT_SECONDS - 2000):
        ms = int((now - age) * 1000)
        old = replace(facts(), id=new_ordered_id("job", ms), created_ms=ms)
        await plane.jobs.create(old, input_line(old.id, WANTED))
    await JobKeeper(plane.jobs, plane.queue, plane.controls, plane.clock).step()
    assert await plane.jobs.folders() == [folder_of(old.id)]


async def test_an_end_that_a_power_loss_undid(plane: BatchPlane) -> None:
    """A server that forgot that a job was cancelled is told of it; the job does not run."""
    await plane.job_keeper.look()
    job_id = (await plane.job())["id"]
    shard = shard_of("m")
    names = ("act", "q:a", "edf", "tn:a", *(f"{kind}:{job_id}.0" for kind in "sk"))
    keys = (f"gw:{{{job_id}}}:job", *(f"gw:{{{shard}}}:{name}" for name in names))
    kept = [(key, await plane.store.execute_command("DUMP", key)) for key in keys]
    await plane.a.post(f"/v1/jobs/{job_id}/cancel")
    await plane.finish()
    before = await plane.get_job(job_id)
    for key, content in kept:
        await plane.store.execute_command("DEL", key)
        await plane.store.execute_command("RESTORE", key, 0, content)
    assert (await plane.get_job(job_id))["status"] == "queued"
    plane.job_keeper._losses._seen = (await plane.jobs.epoch(), "another server")
    await plane.job_keeper.look()
    assert await plane.get_job(job_id) == before
    assert await plane.run(9) == 0
