"""A job in the queue."""

from dataclasses import replace

from gateway.jobs.enqueues import Enqueues
from gateway.jobs.segment import enqueue, input_line, tokens_of
from gateway.schemas.job import deferred_call
from gateway.schemas.requests import build
from gateway.store.job_files import job_blob
from gateway.store.keys import shard_of
from tests.store.test_jobs import facts
from tests.support.batch_plane import BatchPlane

CALL = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 9}
WANTED = deferred_call("/v1/chat/completions", build(CALL, {}, 1, 1))


def test_the_line_is_one_of_an_input_file() -> None:
    """The job's id is the custom id."""
    assert input_line("job_1", WANTED).startswith(b'{"custom_id":"job_1","method":"POST"')
    assert tokens_of(WANTED) > 9


async def test_enqueued_once(plane: BatchPlane) -> None:
    """One row of the right cost; doing it again changes nothing."""
    now = int(plane.clock.now() * 1000)
    job = replace(facts(), created_ms=now, window_ms=60_000, delay_ms=0)
    for _ in range(2):
        await enqueue(Enqueues(plane.queue), job, plane.clock)
    lease = await plane.queue.lease(shard_of("m"), "w", 9, 10**9, 60_000)
    assert lease is not None
    [run] = lease.runs
    assert (run.segment, run.input_ref, run.index_ref) == (
        job.segment,
        job_blob(job.id),
        job_blob(job.id),
    )
    assert 50_000 < run.deadline_ms - now <= 61_000


async def test_time_that_has_passed_is_not_given_again(plane: BatchPlane) -> None:
    """A job put back late has what is left of its window and of its delay."""
    now = int(plane.clock.now() * 1000)
    old = replace(facts(), created_ms=now - 50_000, window_ms=60_000, delay_ms=40_000)
    await enqueue(Enqueues(plane.queue), old, plane.clock)
    lease = await plane.queue.lease(shard_of("m"), "w", 9, 10**9, 60_000)
    assert lease is not None
    assert 0 < lease.runs[0].deadline_ms - now <= 11_000
    young = replace(facts(), created_ms=now, window_ms=60_000, delay_ms=40_000)
    await enqueue(Enqueues(plane.queue), young, plane.clock)
    assert await plane.queue.lease(shard_of("m"), "w", 9, 10**9, 60_000) is None
