"""Records go to flat text fields and back."""

from gateway.core.usage import Usage
from gateway.core.work import SegmentStatus
from gateway.schemas.batch import BatchStatus, Counts
from gateway.store.batch_record import (
    BatchFacts,
    BatchRecord,
    Change,
    PlannedSegment,
    SegmentEnd,
    closed_field,
    first_fields,
)
from tests.support.contract import checked

FACTS = BatchFacts(
    id="batch_1",
    tenant="a",
    key_id="k",
    endpoint="/v1/embeddings",
    input_file_id="file-1",
    completion_window="24h",
    created_at=1_700_000_000,
    expires_at=1_700_086_400,
    metadata={"ü": "\u2028"},
    output_seconds=None,
    weight=2.5,
    models=("m",),
)


def test_facts_come_back() -> None:
    """The manifest holds everything."""
    assert BatchFacts.from_json(FACTS.to_json()) == FACTS


def test_a_record_comes_back() -> None:
    """State, segments, closed segments, counts and usage survive the flat form."""
    end = SegmentEnd(2, 1, SegmentStatus.EXPIRED, Usage(5, 6, 1, 2))
    change = Change(
        {"expired_at": 1_700_000_009},
        (PlannedSegment("batch_1.0", "m", 3),),
        ({"code": "c", "line": 1, "message": "x", "param": None},),
        "file-o",
        "file-e",
        Counts(3, 2, 1),
        Usage(5, 6, 1, 2),
    )
    fields = first_fields(FACTS) | change.to_fields() | closed_field("batch_1.0", end)
    record = BatchRecord.from_fields(fields | {"status": "expired"})
    assert record.facts == FACTS
    assert record.ended
    assert record.segment_end("batch_1.0") == end
    assert record.segment_end("batch_1.1") is None
    batch = checked(record.to_openai(), "batch")
    assert batch["request_counts"] == {"total": 3, "completed": 2, "failed": 1}
    assert (batch["model"], batch["expired_at"]) == ("m", 1_700_000_009)
    assert batch["usage"]["input_tokens_details"] == {"cached_tokens": 1}


def test_a_fresh_record_validates() -> None:
    """Nothing but facts: status validating, everything else null."""
    record = BatchRecord.from_fields(first_fields(FACTS))
    assert record.status is BatchStatus.VALIDATING
    assert checked(record.to_openai(), "batch")["output_file_id"] is None
