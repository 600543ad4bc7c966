"""Job records go to flat text fields and back."""

from gateway.core.usage import Usage
from gateway.core.work import PartRef
from gateway.schemas.job import JobStatus
from gateway.store.job_record import JobEnd, JobFacts, JobRecord, first_fields

FACTS = JobFacts(
    id="job_1",
    tenant="a",
    key_id="k",
    endpoint="/v1/embeddings",
    model="m",
    tokens=7,
    created_ms=1_700_000_000_500,
    window_ms=3000,
    delay_ms=2000,
    priority=3,
    weight=2.5,
    metadata={"ü": "\u2028"},
)


def test_facts_come_back() -> None:
    """What is stored holds everything."""
    assert JobFacts.from_json(FACTS.to_json()) == FACTS
    assert JobRecord.from_fields(first_fields(FACTS)) == JobRecord(FACTS)


def test_an_end_comes_back() -> None:
    """State, usage, error and place of the result survive the flat form."""
    end = JobEnd(JobStatus.FAILED, 5, Usage(1, 2, 1), {"code": "c"}, PartRef(4, 5, 6))
    fields = first_fields(FACTS) | end.to_fields() | {"status": "failed"}
    assert JobRecord.from_fields(fields) == JobRecord(FACTS, end)
    bare = JobEnd(JobStatus.EXPIRED, 5)
    fields = first_fields(FACTS) | bare.to_fields() | {"status": "expired"}
    assert JobRecord.from_fields(fields).end == bare


def test_the_object_of_each_state() -> None:
    """Times are those of the facts and of the end."""
    waiting = JobRecord(FACTS).to_openai()
    assert waiting["status"] == "queued"
    assert (waiting["created_at"], waiting["expires_at"]) == (1_700_000_000, 1_700_000_003)
    assert waiting["not_before"] == 1_700_000_002
    assert JobRecord(FACTS, running=True).status is JobStatus.IN_PROGRESS
    ended = JobRecord(FACTS, JobEnd(JobStatus.COMPLETED, 9, Usage(1, 1))).to_openai()
    assert (ended["completed_at"], ended["usage"]["total_tokens"]) == (9, 2)
