"""The one segment of a job: one row, and no child process to validate it."""

import struct

from gateway.batches.ordering import estimated_tokens
from gateway.core.clock import Clock
from gateway.core.exact_json import dumps
from gateway.core.work import Quota, SegmentSpec
from gateway.jobs.enqueues import Enqueues
from gateway.schemas.job import JobCreate
from gateway.store.job_files import job_blob
from gateway.store.job_record import JobFacts
from gateway.store.keys import shard_of


def input_line(job_id: str, wanted: JobCreate) -> bytes:
    """The call as a line of an input file, without the newline."""
    return dumps(
        {
            "custom_id": job_id,
            "method": "POST",
            "url": wanted.endpoint,
            "body": wanted.request.members,
        }
    )


def tokens_of(wanted: JobCreate) -> int:
    """The estimate for the call."""
    return estimated_tokens(wanted.request.members)


async def enqueue(
    enqueues: Enqueues, facts: JobFacts, clock: Clock, quota: Quota | None = None
) -> None:
    """Add the job to the queue; adding it again changes nothing.

    Raises RateLimited when the tenant would have more than ``quota`` queued.
    """
    await enqueues.send(shard_of(facts.model), spec_of(facts, clock), quota)


def spec_of(facts: JobFacts, clock: Clock) -> SegmentSpec:
    """The segment as it is to be enqueued now."""
    passed = int(clock.now() * 1000) - facts.created_ms
    blob = job_blob(facts.id)
    return SegmentSpec(
        segment=facts.segment,
        job=facts.id,
        tenant=facts.tenant,
        model=facts.model,
        tokens=struct.pack("<I", facts.tokens),
        window_ms=max(1, facts.window_ms - passed),
        input_ref=blob,
        index_ref=blob,
        endpoint=facts.endpoint,
        weight=facts.weight,
        priority=facts.priority,
        delay_ms=max(0, facts.delay_ms - passed) if facts.delay_ms else 0,
    )
