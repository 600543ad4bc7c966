"""One job as it is stored: facts that never change, and a state as flat text fields.

The facts lie in the blob on disk; facts and state together are the Redis hash, and, once the job
has ended, the end file on disk.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import orjson

from gateway.core.usage import Usage
from gateway.core.work import PartRef
from gateway.schemas.job import ENDED, JobStatus, job_object


@dataclass(frozen=True, slots=True)
class JobFacts:
    """What was decided at creation. ``created_ms`` is Unix time; the others count from it.

    ``key`` and ``digest`` are those of the idempotency key and of the request it came with.
    """

    id: str
    tenant: str
    key_id: str
    endpoint: str
    model: str
    tokens: int
    created_ms: int
    window_ms: int
    delay_ms: int
    priority: int
    weight: float
    metadata: dict[str, str] | None
    key: str | None = None
    digest: str = ""

    def to_json(self) -> bytes:
        """As it is stored."""
        return orjson.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str | bytes) -> "JobFacts":
        """Read it."""
        return cls(**orjson.loads(text))

    @property
    def segment(self) -> str:
        """The one segment."""
        return f"{self.id}.0"

    @property
    def created_at(self) -> int:
        """Unix seconds."""
        return self.created_ms // 1000

    @property
    def expires_at(self) -> int:
        """Unix seconds."""
        return (self.created_ms + self.window_ms) // 1000

    @property
    def not_before(self) -> int | None:
        """Unix seconds; None when it may run at once."""
        return (self.created_ms + self.delay_ms) // 1000 if self.delay_ms else None


@dataclass(frozen=True, slots=True)
class JobEnd:
    """How a job ended, at ``at`` in Unix seconds. ``ref`` is where its result line lies."""

    status: JobStatus
    at: int
    usage: Usage = field(default_factory=Usage)
    error: dict[str, Any] | None = None
    ref: PartRef | None = None

    def to_fields(self) -> dict[str, str]:
        """As fields of the flat form, less the status."""
        fields = {"at": str(self.at), "usage": _text(asdict(self.usage))}
        if self.error is not None:
            fields["error"] = _text(self.error)
        if self.ref is not None:
            fields["ref"] = _text(asdict(self.ref))
        return fields

    @classmethod
    def from_fields(cls, fields: Mapping[str, str]) -> "JobEnd":
        """Read the flat form of a job that has ended."""
        read = {name: orjson.loads(fields[name]) for name in _JSON if name in fields}
        return cls(
            JobStatus(fields["status"]),
            int(fields["at"]),
            Usage(**read.get("usage", {})),
            read.get("error"),
            PartRef(**read["ref"]) if "ref" in read else None,
        )


_JSON = ("usage", "error", "ref")


@dataclass(frozen=True, slots=True)
class JobRecord:
    """Facts and state; ``end`` is None until the job has ended. ``running``: a target has it."""

    facts: JobFacts
    end: JobEnd | None = None
    running: bool = False

    @property
    def id(self) -> str:
        """The job's id."""
        return self.facts.id

    @property
    def status(self) -> JobStatus:
        """The state a client sees."""
        if self.end is not None:
            return self.end.status
        return JobStatus.IN_PROGRESS if self.running else JobStatus.QUEUED

    def to_openai(self) -> dict[str, Any]:
        """The Job object."""
        facts, end = self.facts, self.end
        fixed: dict[str, Any] = {
            "id": facts.id,
            "status": self.status,
            "endpoint": facts.endpoint,
            "model": facts.model,
            "priority": facts.priority,
            "created_at": facts.created_at,
            "not_before": facts.not_before,
            "expires_at": facts.expires_at,
            "metadata": facts.metadata,
        }
        if end is None:
            return job_object(fixed, Usage())
        return job_object({**fixed, f"{end.status}_at": end.at, "error": end.error}, end.usage)

    @classmethod
    def from_fields(cls, fields: Mapping[str, str]) -> "JobRecord":
        """Read the flat form."""
        ended = fields["status"] in ENDED
        end = JobEnd.from_fields(fields) if ended else None
        return cls(JobFacts.from_json(fields["facts"]), end)


def first_fields(facts: JobFacts) -> dict[str, str]:
    """The flat form of a job just created."""
    return {"facts": facts.to_json().decode(), "status": str(JobStatus.QUEUED)}


def _text(value: object) -> str:
    return orjson.dumps(value).decode()
