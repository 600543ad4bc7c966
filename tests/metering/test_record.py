"""Records survive their way through JSON."""

import orjson
import pytest

from gateway.core.usage import Usage
from gateway.metering.record import (
    Attempt,
    CallRecord,
    CallStatus,
    intent_from_json,
    intent_to_json,
)
from tests.support.calls import an_intent, an_outcome


def test_an_intent_reads_back_as_it_was() -> None:
    """Nothing of an intent is lost in a journal."""
    intent = an_intent(job="batch_1")
    assert intent_from_json(orjson.loads(orjson.dumps(intent_to_json(intent)))) == intent


@pytest.mark.parametrize("status", list(CallStatus))
def test_a_record_reads_back_as_it_was(status: CallStatus) -> None:
    """Nothing of a record is lost in a journal."""
    outcome = an_outcome(
        Usage(7, 3, 2, 1, estimated=True),
        status=status,
        attempts=(Attempt("a", None, "timeout"), Attempt("b", 200)),
    )
    record = CallRecord(an_intent(), outcome, bound=64)
    assert CallRecord.from_json(orjson.loads(orjson.dumps(record.to_json()))) == record


def test_something_else_is_no_record() -> None:
    """A foreign line is refused, not guessed at."""
    with pytest.raises(KeyError):
        CallRecord.from_json({"close": "req_1"})
