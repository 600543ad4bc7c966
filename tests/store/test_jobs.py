"""Jobs on disk and in Redis, whichever of them has lost what."""

from dataclasses import replace

import pytest

from gateway.core.errors import NotFound, StoreUnavailable
from gateway.core.ids import new_ordered_id
from gateway.core.usage import Usage
from gateway.core.work import PartRef, RowOutcome
from gateway.schemas.job import JobStatus
from gateway.store.client import connect
from gateway.store.job_commands import IdempotencyClaim, JobCommands, key_digest
from gateway.store.job_files import end_blob, folder_of, job_blob, part_blob
from gateway.store.job_record import JobEnd, JobFacts, JobRecord
from gateway.store.jobs import LISTING, JobStore, own_key
from gateway.store.part_notes import NOTE_BYTES, PartNote, noted
from tests.store.test_job_record import FACTS
from tests.support.batch_plane import BatchPlane

LINE = b'{"custom_id":"c"}'


def facts(tenant: str = "a") -> JobFacts:
    """Of a job of its own."""
    return replace(FACTS, id=new_ordered_id("job", 1_800_000_000_000), tenant=tenant)


async def test_a_job_outlives_redis(plane: BatchPlane) -> None:
    """Created, ended, and read with an empty Redis; each state as it was."""
    created = await plane.jobs.create(facts(), LINE)
    await plane.store.execute_command("FLUSHALL")
    assert await plane.jobs.load(created.id) == created
    put_back = await plane.jobs.put_back(created.id)
    assert put_back == created.facts
    end = JobEnd(JobStatus.COMPLETED, 5, Usage(1, 1), ref=PartRef(1, 0, 2))
    assert await plane.jobs.end(created.id, end) is JobStatus.QUEUED
    await plane.jobs.save(created.id, end)
    await plane.store.execute_command("FLUSHALL")
    assert await plane.jobs.load(created.id) == JobRecord(created.facts, end)
    assert await plane.jobs.put_back(created.id) is None
    assert await plane.jobs.live(created.id) is None
    assert (await plane.jobs.page("a", 9, None))[0] == [JobRecord(created.facts, end)]


async def test_a_job_ends_once(plane: BatchPlane) -> None:
    """The second end finds the first, also when Redis lost it; what is no job is not ended."""
    job_id = (await plane.jobs.create(facts(), LINE)).id
    assert await plane.jobs.end(job_id, JobEnd(JobStatus.CANCELLED, 1)) is JobStatus.QUEUED
    assert await plane.jobs.end(job_id, JobEnd(JobStatus.EXPIRED, 2)) is JobStatus.CANCELLED
    await plane.store.execute_command("FLUSHALL")
    first = JobEnd(JobStatus.EXPIRED, 3)
    assert await plane.jobs.end(job_id, first) is JobStatus.QUEUED
    await plane.jobs.save(job_id, first)
    await plane.store.execute_command("FLUSHALL")
    assert await plane.jobs.end(job_id, JobEnd(JobStatus.CANCELLED, 4)) is None
    assert await plane.jobs.end(facts().id, JobEnd(JobStatus.EXPIRED, 2)) is None


async def test_an_ended_job_leaves_redis(plane: BatchPlane) -> None:
    """Its record has minutes to live there; the disk keeps it."""
    job_id = (await plane.jobs.create(facts(), LINE)).id
    end = JobEnd(JobStatus.CANCELLED, 1)
    await plane.jobs.end(job_id, end)
    await plane.jobs.save(job_id, end)
    left = await plane.store.execute_command("TTL", f"gw:{{{job_id}}}:job")
    assert 0 < left <= 600


async def test_tenants(plane: BatchPlane) -> None:
    """A foreign job is not there, nor is what is no id."""
    job_id = (await plane.jobs.create(facts(), LINE)).id
    assert (await plane.jobs.get("a", job_id)).id == job_id
    for tenant, name in (("b", job_id), ("a", "job_1"), ("a", "../x"), ("a", facts().id)):
        with pytest.raises(NotFound):
            await plane.jobs.get(tenant, name)
    assert await plane.jobs.page("b", 9, None) == ([], False)


async def test_the_result_line(plane: BatchPlane) -> None:
    """Read by the reference in the end; without one there is none."""
    record = await plane.jobs.create(facts(), LINE)
    with pytest.raises(NotFound):
        await plane.jobs.line(record)
    await plane.blobs.put(part_blob(record.id, 3), b"..line..")
    end = JobEnd(JobStatus.COMPLETED, 1, ref=PartRef(3, 2, 4))
    assert await plane.jobs.line(JobRecord(record.facts, end)) == b"line"


async def test_a_removed_job_leaves_nothing(plane: BatchPlane) -> None:
    """No file, no record, not listed, not put back."""
    record = await plane.jobs.create(facts(), LINE)
    await plane.blobs.put(part_blob(record.id, 3), b"line")
    end = JobEnd(JobStatus.COMPLETED, 1, ref=PartRef(3, 0, 4))
    await plane.jobs.end(record.id, end)
    await plane.jobs.save(record.id, end)
    await plane.jobs.remove(await plane.jobs.get("a", record.id))
    assert await plane.blobs.list(folder_of(record.id)) == []
    assert await plane.jobs.page("a", 9, None) == ([], False)
    assert await plane.jobs.put_back(record.id) is None


async def test_what_a_folder_holds(plane: BatchPlane) -> None:
    """Jobs, and whether they have ended; other files are no jobs."""
    first, second = [await plane.jobs.create(facts(), LINE) for _ in range(2)]
    await plane.jobs.save(first.id, JobEnd(JobStatus.CANCELLED, 1))
    await plane.blobs.put(part_blob(second.id, 3), b"line")
    [folder] = await plane.jobs.folders()
    found = await plane.jobs.ids_in(folder)
    assert {job_id: job.ended for job_id, job in found.items()} == {
        first.id: True,
        second.id: False,
    }
    await plane.jobs.remove_folder(folder)
    assert await plane.blobs.size(job_blob(second.id)) is None
    assert await plane.blobs.size(end_blob(first.id)) is None


async def test_the_result_that_counts_after_a_loss(plane: BatchPlane) -> None:
    """The first whole line, by the number of its part; what a crash cut off is none."""
    job_id = (await plane.jobs.create(facts(), LINE)).id
    note = PartNote(0, 0, True, Usage(3, 4), "2026010100")
    await plane.blobs.put(part_blob(job_id, 1), noted(note, b"cut off\n")[:-3])
    await plane.blobs.put(part_blob(job_id, 2), noted(note, b"whole\n"))
    found = await plane.jobs.result(job_id, [2, 1])
    ref = PartRef(2, NOTE_BYTES, 6)
    assert found == ("2026010100", RowOutcome(0, ref, Usage(3, 4), ok=True))
    assert await plane.jobs.result(job_id, [1]) is None


async def test_an_idempotency_key_comes_back(plane: BatchPlane) -> None:
    """With the job, for the rest of its day."""
    now = int(plane.clock.now() * 1000)
    wanted = replace(facts(), created_ms=now, key=key_digest(own_key("k")), digest="d")
    job_id = (await plane.jobs.create(wanted, LINE)).id
    assert await plane.jobs.held_key("a", "k") is None
    await plane.jobs.put_back(job_id)
    assert await plane.jobs.held_key("a", "k") == IdempotencyClaim(job_id, "d")


async def test_redis_is_told_of_an_end(plane: BatchPlane) -> None:
    """What it says is what the disk says."""
    record = await plane.jobs.create(facts(), LINE)
    end = JobEnd(JobStatus.EXPIRED, 7)
    await plane.jobs.restore_end(record.id, end)
    assert await plane.jobs.live(record.id) == JobRecord(record.facts, end)


async def test_keys_are_not_those_of_batches(plane: BatchPlane) -> None:
    """The same key may be used for one of each."""
    own, other = IdempotencyClaim("job_1", "d"), IdempotencyClaim("batch_1", "e")
    assert await plane.jobs.claim_key("a", "k", own) == own
    assert await plane.batches.claim_key("a", "k", other) == other
    assert await plane.jobs.held_key("a", "k") == own


async def test_without_redis_nothing_is_written(plane: BatchPlane) -> None:
    """A job that is refused does not run later."""
    nobody = connect("redis://127.0.0.1:1/0")
    jobs, wanted = JobStore(JobCommands(nobody, LISTING), plane.blobs), facts()
    with pytest.raises(StoreUnavailable):
        await jobs.create(wanted, LINE)
    assert await plane.blobs.size(job_blob(wanted.id)) is None
    await nobody.aclose()
