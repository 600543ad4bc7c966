"""The policy: targets, lanes, keys, tenants. What a platform team writes.

Unknown keys are refused. Every class is frozen: a policy is replaced as a whole, never changed.
"""

from typing import Literal

from pydantic import Field, SecretStr, field_validator, model_validator

from gateway.core.lanes import Lane
from gateway.core.targets import Timeouts
from gateway.core.work import Quota
from gateway.policy.lanes import Lanes
from gateway.policy.values import Duration, PolicyModel
from gateway.schemas.webhooks import secret_key


class TimeoutPolicy(PolicyModel):
    """Limits of one attempt at a target."""

    connect: Duration = 5.0
    first_byte: Duration = 300.0
    idle: Duration = 60.0
    total: Duration = 600.0

    def to_timeouts(self) -> Timeouts:
        """As the value the provider takes."""
        return Timeouts(self.connect, self.first_byte, self.idle, self.total)


class RetryPolicy(PolicyModel):
    """Full jitter: the bound doubles from ``base`` to ``cap``, the delay is drawn below it."""

    attempts: int = Field(default=4, ge=1, le=20)
    base: Duration = 0.25
    cap: Duration = 8.0
    resend_unknown: bool = False


class WorkerPolicy(PolicyModel):
    """Settings of a bundled worker.

    ``rows`` sequences decode at once, of which ``reserved_rows`` are kept free of offline work;
    ``context`` tokens per sequence; ``itl_target`` is the step time aimed at while an interactive
    sequence decodes; ``prefill_chunk`` prompt tokens are processed per step beside decodes.
    """

    rows: int = Field(default=72, ge=1, le=1024)
    reserved_rows: int = Field(default=8, ge=0)
    context: int = Field(default=2048, ge=64)
    itl_target: Duration = 0.05
    prefill_chunk: int = Field(default=256, ge=16)
    threads: int | None = Field(default=None, ge=1)


class RateLimits(PolicyModel):
    """What the provider allows, for each of our keys there. Unset: found out while batches run."""

    requests_per_minute: float | None = Field(default=None, ge=1)
    tokens_per_minute: float | None = Field(default=None, ge=1)


class BatchApiPolicy(PolicyModel):
    """Use of a provider's own Batch API for batch rows that can wait.

    ``window`` is the completion window asked for. Rows with at least ``min_slack`` left to their
    deadline are collected for ``collect`` seconds or until there are ``max_rows``, and handed in;
    ``max_batches`` run there at once and are asked about every ``poll`` seconds.
    """

    window: str = Field(default="24h", min_length=1)
    min_slack: Duration = 3600.0
    collect: Duration = 10.0
    poll: Duration = Field(default=30.0, gt=0)
    max_rows: int = Field(default=5000, ge=1, le=50_000)
    max_batches: int = Field(default=4, ge=1)


class TargetPolicy(PolicyModel):
    """One model server or provider.

    ``kind: local`` is the bundled worker, started and supervised by ``headway serve``; every other
    kind needs ``base_url`` (ending in ``/v1`` as the vendor writes it). ``models`` is a list, or a
    mapping from the public name to the name the target knows. Of several ``api_keys`` batch rows
    use the next one when a key is refused or throttled; other calls use the first.
    ``kind: azure`` sends the key as Azure wants it; the names it knows are deployments.
    ``responses`` says that the target has the Responses API; for others it is translated.
    """

    kind: Literal["openai", "vllm", "sglang", "azure", "local"] = "openai"
    base_url: str | None = None
    api_version: str | None = Field(default=None, min_length=1)
    api_key: SecretStr | None = None
    api_keys: tuple[SecretStr, ...] = ()
    limits: RateLimits = RateLimits()
    batch_api: BatchApiPolicy | None = None
    models: dict[str, str] = Field(min_length=1)
    lanes: Lanes = Lanes()
    timeouts: TimeoutPolicy = TimeoutPolicy()
    retry: RetryPolicy = RetryPolicy()
    headers: dict[str, SecretStr] = Field(default_factory=dict)
    priority: bool | None = None
    stream_usage: bool = True
    responses: bool = False
    worker: WorkerPolicy = WorkerPolicy()

    @model_validator(mode="before")
    @classmethod
    def _models_list_to_mapping(cls, value: object) -> object:
        if isinstance(value, dict) and isinstance(value.get("models"), list):
            return {**value, "models": {str(name): str(name) for name in value["models"]}}
        return value

    @field_validator("batch_api", mode="before")
    @classmethod
    def _plain_yes(cls, value: object) -> object:
        return {} if value is True else (None if value is False else value)

    @model_validator(mode="after")
    def _has_an_address(self) -> "TargetPolicy":
        if self.kind != "local" and not self.base_url:
            raise ValueError("base_url is missing")
        return self

    @model_validator(mode="after")
    def _what_azure_has(self) -> "TargetPolicy":
        if self.api_version is not None and self.kind != "azure":
            raise ValueError("api_version is for kind: azure")
        if self.batch_api is not None and self.kind == "azure":
            raise ValueError("batch_api is not available for kind: azure")
        return self

    @model_validator(mode="after")
    def _one_way_to_give_keys(self) -> "TargetPolicy":
        if self.api_key is not None and self.api_keys:
            raise ValueError("give api_key or api_keys, not both")
        return self

    @property
    def shared(self) -> bool:
        """Whether interactive calls and batch rows meet on one engine here."""
        if self.lanes.batch.shared is not None:
            return self.lanes.batch.shared
        return self.kind != "openai" or not str(self.base_url).startswith("https:")

    @property
    def sends_priority(self) -> bool:
        """Whether calls carry a ``priority`` member (lower is sooner)."""
        return self.kind == "local" if self.priority is None else self.priority


class KeyPolicy(PolicyModel):
    """A client key, in clear through ``${ENV}`` (``key``) or as ``sha256`` hex digest.

    ``ceiling`` is the fastest lane the key may use.
    """

    tenant: str = "default"
    key: SecretStr | None = None
    sha256: str | None = Field(default=None, pattern="^[0-9a-f]{64}$")
    ceiling: Lane = Lane.INTERACTIVE
    models: tuple[str, ...] | None = None

    @model_validator(mode="after")
    def _exactly_one_secret(self) -> "KeyPolicy":
        if (self.key is None) == (self.sha256 is None):
            raise ValueError("give exactly one of key and sha256")
        if self.key is not None and not self.key.get_secret_value().strip():
            raise ValueError("key is empty")
        return self


class WebhookPolicy(PolicyModel):
    """Where a tenant is told what ended; ``events`` such as ``batch.completed``, default all.

    ``secret`` is ``whsec_`` and base64; the receiver checks signatures with it.
    """

    url: str
    secret: SecretStr
    events: tuple[str, ...] | None = None

    @field_validator("secret")
    @classmethod
    def _is_a_key(cls, value: SecretStr) -> SecretStr:
        secret_key(value.get_secret_value())
        return value


class TenantPolicy(PolicyModel):
    """A tenant's share of the offline capacity, relative to the others, its quota and its webhooks.

    A batch that would bring its unfinished rows or estimated tokens of one model over
    ``max_queued_rows`` or ``max_queued_tokens`` fails.
    """

    weight: float = Field(default=1.0, gt=0)
    max_queued_rows: int | None = Field(default=None, ge=1)
    max_queued_tokens: int | None = Field(default=None, ge=1)
    webhooks: tuple[WebhookPolicy, ...] = ()


class ClassifyRule(PolicyModel):
    """Sends matching calls to ``lane``; every given field must match. Names are unique."""

    lane: Lane
    keys: tuple[str, ...] | None = None
    tenants: tuple[str, ...] | None = None
    models: tuple[str, ...] | None = None
    endpoints: tuple[str, ...] | None = None
    user_agent: str | None = None


class ClassifyPolicy(PolicyModel):
    """How a call gets its lane when it does not say. ``rules`` are tried in the file's order."""

    default: Lane = Lane.INTERACTIVE
    array_offline_over: int = Field(default=16, ge=1)
    patient_over: Duration = 900.0
    rules: dict[str, ClassifyRule] = Field(default_factory=dict)


class BatchPolicy(PolicyModel):
    """How the dispatcher takes offline work.

    One lease holds at most ``lease_rows`` rows and ``lease_tokens`` estimated tokens. A batch that
    would finish less than ``rescue_slack`` before its deadline goes first.
    """

    lease_rows: int = Field(default=64, ge=1, le=1024)
    lease_tokens: int = Field(default=1_000_000, ge=1)
    quantum: int = Field(default=16, ge=1)
    rescue_slack: Duration = 60.0


class Policy(PolicyModel):
    """The whole file."""

    targets: dict[str, TargetPolicy] = Field(min_length=1)
    keys: dict[str, KeyPolicy] = Field(default_factory=dict)
    tenants: dict[str, TenantPolicy] = Field(default_factory=dict)
    classify: ClassifyPolicy = ClassifyPolicy()
    batch: BatchPolicy = BatchPolicy()
    head_hold: Duration = 10.0

    def models(self) -> dict[str, tuple[str, ...]]:
        """Public model name → names of the targets that serve it, in the file's order."""
        served: dict[str, tuple[str, ...]] = {}
        for name, target in self.targets.items():
            for model in target.models:
                served[model] = (*served.get(model, ()), name)
        return served

    def quota(self, tenant: str) -> Quota:
        """What the tenant may have queued for one model."""
        known = self.tenants.get(tenant) or TenantPolicy()
        return Quota(known.max_queued_rows or 0, known.max_queued_tokens or 0)

    def weight(self, tenant: str) -> float:
        """The tenant's weight; 1 when it is not declared."""
        known = self.tenants.get(tenant)
        return known.weight if known else 1.0
