"""The ledger: every call is opened before it is made and closed exactly once."""

import logging
from collections.abc import Callable, Sequence
from typing import Protocol

from gateway.metering.record import CallIntent, CallOutcome, CallRecord

log = logging.getLogger(__name__)


class OpenCall(Protocol):
    """A call under way."""

    def close(self, outcome: CallOutcome) -> None:
        """Record how it went. Never blocks, never raises; only the first close counts."""


class Ledger(Protocol):
    """Where calls are recorded. One per process; not for use from several threads."""

    def open(self, intent: CallIntent) -> OpenCall:
        """Note that the call is about to be made. Never blocks, never raises."""


class RecordSink(Protocol):
    """Where the lines go; ``gateway.metering.journal.Journal`` is the one of the product."""

    def opened(self, intent: CallIntent) -> None:
        """Keep the intent."""

    def closed(self, record: CallRecord) -> None:
        """Keep the record."""


class JournalLedger:
    """The ledger of a process. Each of ``observers`` sees each record once."""

    def __init__(
        self, sink: RecordSink, observers: Sequence[Callable[[CallRecord], None]] = ()
    ) -> None:
        self._sink = sink
        self._observers = observers

    def open(self, intent: CallIntent) -> OpenCall:
        """Note that the call is about to be made."""
        self._sink.opened(intent)
        return _Open(intent, self._sink, self._observers)


class _Open:
    __slots__ = ("_closed", "_intent", "_observers", "_sink")

    def __init__(
        self,
        intent: CallIntent,
        sink: RecordSink,
        observers: Sequence[Callable[[CallRecord], None]],
    ) -> None:
        self._intent = intent
        self._sink = sink
        self._observers = observers
        self._closed = False

    def close(self, outcome: CallOutcome) -> None:
        """Record how it went; only the first close counts."""
        if self._closed:
            return
        self._closed = True
        record = CallRecord(self._intent, outcome)
        self._sink.closed(record)
        for observe in self._observers:
            try:
                observe(record)
            except Exception:
                log.exception("a record could not be observed")
