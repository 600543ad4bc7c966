"""One record per call."""

from gateway.core.usage import Usage
from gateway.metering.ledger import JournalLedger
from gateway.metering.record import Attempt, CallIntent, CallRecord, CallStatus
from tests.support.calls import an_intent, an_outcome


class Lines:
    """Keeps what the ledger writes."""

    def __init__(self) -> None:
        self.intents: list[CallIntent] = []
        self.records: list[CallRecord] = []

    def opened(self, intent: CallIntent) -> None:
        self.intents.append(intent)

    def closed(self, record: CallRecord) -> None:
        self.records.append(record)


def test_met_07_one_record_for_a_call_of_three_attempts() -> None:
    """UP1 fails twice, UP2 answers with 40 tokens: one record of 40 tokens and 3 attempts."""
    lines = Lines()
    call = JournalLedger(lines).open(an_intent())
    attempts = (Attempt("up1", 500), Attempt("up1", 500), Attempt("up2", 200))
    call.close(an_outcome(Usage(12, 40), target="up2", attempts=attempts))
    assert len(lines.records) == 1
    assert lines.records[0].outcome.usage.completion == 40
    assert len(lines.records[0].outcome.attempts) == 3


def test_only_the_first_close_counts() -> None:
    """A disconnect noticed after the end changes nothing."""
    lines = Lines()
    seen: list[CallRecord] = []
    call = JournalLedger(lines, [seen.append]).open(an_intent())
    call.close(an_outcome())
    call.close(an_outcome(status=CallStatus.CANCELLED))
    assert [record.outcome.status for record in lines.records] == [CallStatus.OK]
    assert seen == lines.records


def test_the_intent_is_noted_before_the_call() -> None:
    """What is open is known before anything is sent."""
    lines = Lines()
    JournalLedger(lines).open(an_intent("req_9"))
    assert [intent.id for intent in lines.intents] == ["req_9"]
    assert not lines.records


def test_who_cannot_observe_a_record_harms_neither_call_nor_others() -> None:
    """The record is written and the next observer has it."""
    lines = Lines()
    seen: list[CallRecord] = []

    def broken(_: CallRecord) -> None:
        raise ValueError

    JournalLedger(lines, [broken, seen.append]).open(an_intent()).close(an_outcome())
    assert seen == lines.records
