"""One batch as it is stored: facts that never change, and a state as flat text fields.

The facts are the manifest on disk; facts and state together are the Redis hash, and, once the
batch has ended, the state file on disk.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import orjson

from gateway.core.usage import Usage
from gateway.core.work import SegmentStatus
from gateway.schemas.batch import TIMES, BatchStatus, Counts, Outlook, batch_object

ENDED = frozenset(
    {BatchStatus.FAILED, BatchStatus.COMPLETED, BatchStatus.EXPIRED, BatchStatus.CANCELLED}
)
_CLOSED = "closed:"


@dataclass(frozen=True, slots=True)
class BatchFacts:
    """What was decided at creation. Times are Unix seconds; ``models`` None: any model.

    ``output_seconds`` is how long output files are kept; None for the default of 30 days.
    ``idempotency`` is the digest of the key it came with, and that of the request.
    """

    id: str
    tenant: str
    key_id: str
    endpoint: str
    input_file_id: str
    completion_window: str
    created_at: int
    expires_at: int
    metadata: dict[str, str] | None
    output_seconds: int | None
    weight: float
    models: tuple[str, ...] | None
    idempotency: tuple[str, str] | None = None

    def to_json(self) -> bytes:
        """The manifest."""
        return orjson.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str | bytes) -> "BatchFacts":
        """Read a manifest."""
        parsed = orjson.loads(text)
        pairs = {
            n: tuple(parsed[n]) for n in ("models", "idempotency") if parsed.get(n) is not None
        }
        return cls(**{**parsed, **pairs})


@dataclass(frozen=True, slots=True)
class PlannedSegment:
    """One segment of a batch; its index blob is ``jobs/<job>/index-<place>``."""

    segment: str
    model: str
    rows: int


@dataclass(frozen=True, slots=True)
class SegmentEnd:
    """What the files of a closed segment hold: lines in output and error file, tokens.

    ``hours`` is what the meter got for it: hour -> requests, failed and the tokens by name.
    """

    ok: int
    bad: int
    closing: SegmentStatus
    usage: Usage
    hours: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BatchRecord:
    """Facts and state. ``counts`` and ``usage`` are final only when the batch has ended.

    ``outlook`` is never stored.
    """

    facts: BatchFacts
    status: BatchStatus
    times: Mapping[str, int]
    segments: tuple[PlannedSegment, ...] = ()
    closed: Mapping[str, SegmentEnd] | None = None
    errors: tuple[dict[str, Any], ...] = ()
    output_file_id: str | None = None
    error_file_id: str | None = None
    counts: Counts = field(default_factory=Counts)
    usage: Usage = field(default_factory=Usage)
    outlook: Outlook | None = None

    @property
    def id(self) -> str:
        """The batch's id."""
        return self.facts.id

    @property
    def ended(self) -> bool:
        """Whether the state is final."""
        return self.status in ENDED

    def segment_end(self, segment: str) -> SegmentEnd | None:
        """What is known of a segment whose files are written."""
        return (self.closed or {}).get(segment)

    def with_progress(
        self, counts: Counts, usage: Usage, outlook: Outlook | None = None
    ) -> "BatchRecord":
        """The record with live figures."""
        return replace(self, counts=counts, usage=usage, outlook=outlook)

    def to_openai(self) -> dict[str, Any]:
        """The Batch object."""
        facts = self.facts
        models = {segment.model for segment in self.segments}
        fixed: dict[str, Any] = {
            "id": facts.id,
            "endpoint": facts.endpoint,
            "model": next(iter(models)) if len(models) == 1 else None,
            "errors": self.errors,
            "input_file_id": facts.input_file_id,
            "completion_window": facts.completion_window,
            "status": self.status,
            "output_file_id": self.output_file_id,
            "error_file_id": self.error_file_id,
            "created_at": facts.created_at,
            "expires_at": facts.expires_at,
            "metadata": facts.metadata,
            **self.times,
        }
        return batch_object(fixed, counts=self.counts, usage=self.usage, outlook=self.outlook)

    @classmethod
    def from_fields(cls, fields: Mapping[str, str]) -> "BatchRecord":
        """Read the flat form."""
        read = {name: orjson.loads(text) for name, text in fields.items() if name in _JSON}
        closed = {
            name.removeprefix(_CLOSED): _segment_end(text)
            for name, text in fields.items()
            if name.startswith(_CLOSED)
        }
        return cls(
            BatchFacts.from_json(fields["facts"]),
            BatchStatus(fields["status"]),
            {name: int(fields[name]) for name in TIMES if name in fields},
            tuple(PlannedSegment(**segment) for segment in read.get("segments", ())),
            closed,
            tuple(read.get("errors", ())),
            fields.get("output_file_id"),
            fields.get("error_file_id"),
            Counts(**read.get("counts", {})),
            Usage(**read.get("usage", {})),
        )


_JSON = frozenset({"segments", "errors", "counts", "usage"})


@dataclass(frozen=True, slots=True)
class Change:
    """What a transition writes besides the status; None leaves a member as it is."""

    times: Mapping[str, int] | None = None
    segments: tuple[PlannedSegment, ...] | None = None
    errors: tuple[dict[str, Any], ...] | None = None
    output_file_id: str | None = None
    error_file_id: str | None = None
    counts: Counts | None = None
    usage: Usage | None = None

    def timed(self, times: Mapping[str, int]) -> "Change":
        """The same change with other times."""
        return replace(self, times=times)

    def to_fields(self) -> dict[str, str]:
        """As fields of the flat form."""
        fields = {name: str(at) for name, at in (self.times or {}).items()}
        if self.segments is not None:
            fields["segments"] = _text([asdict(segment) for segment in self.segments])
        if self.errors is not None:
            fields["errors"] = _text(list(self.errors))
        if self.counts is not None:
            fields["counts"] = _text(asdict(self.counts))
        if self.usage is not None:
            fields["usage"] = _text(asdict(self.usage))
        files = {"output_file_id": self.output_file_id, "error_file_id": self.error_file_id}
        return fields | {name: value for name, value in files.items() if value is not None}


def first_fields(facts: BatchFacts) -> dict[str, str]:
    """The flat form of a batch just created."""
    return {"facts": facts.to_json().decode(), "status": str(BatchStatus.VALIDATING)}


def closed_field(segment: str, end: SegmentEnd) -> dict[str, str]:
    """The field that says what the files of ``segment`` hold."""
    return {_CLOSED + segment: _text(asdict(end))}


def _segment_end(text: str) -> SegmentEnd:
    parsed = orjson.loads(text)
    closing, usage = SegmentStatus(parsed["closing"]), Usage(**parsed["usage"])
    return SegmentEnd(parsed["ok"], parsed["bad"], closing, usage, parsed.get("hours", {}))


def _text(value: object) -> str:
    return orjson.dumps(value).decode()
