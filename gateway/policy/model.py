"""The policy: targets, models, keys, tenants. What a platform team writes.

Unknown keys are refused. Every class is frozen: a policy is replaced as a whole, never changed.
"""

import re
from typing import Final
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator

from gateway.core.lanes import Lane
from gateway.core.work import Quota
from gateway.policy.target import TargetPolicy
from gateway.policy.values import Duration, PolicyModel
from gateway.schemas.webhooks import secret_key

_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


class ModelPolicy(PolicyModel):
    """A model that targets serve.

    ``aliases`` are other names for it. The models of ``fallback`` serve a call when its own targets
    do not, ``longer_context`` one that is too long for them; the key must be allowed to use them.
    With ``affinity`` a conversation stays at the target that holds its prefix.
    """

    aliases: tuple[str, ...] = ()
    fallback: tuple[str, ...] = ()
    longer_context: str | None = None
    affinity: bool = True


class KeyPolicy(PolicyModel):
    """A client key, in clear through ``${ENV}`` (``key``) or as ``sha256`` hex digest.

    ``ceiling`` is the fastest lane the key may use.
    """

    tenant: str = "default"
    key: SecretStr | None = None
    sha256: str | None = None
    ceiling: Lane = Lane.INTERACTIVE
    models: tuple[str, ...] | None = None

    @field_validator("sha256")
    @classmethod
    def _is_a_digest(cls, value: str | None) -> str | None:
        if value is not None and not _DIGEST.fullmatch(value):
            raise ValueError(
                "a digest is 64 of 0-9 and a-f, as `headway keys hash` prints it for a key"
            )
        return value

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

    weight: float = Field(default=1.0, ge=0.001, le=1_000_000)
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


class CorsPolicy(PolicyModel):
    """Pages of ``origins`` (such as ``https://app.example``) may call from browsers; ``*``: all."""

    origins: tuple[str, ...] = ()

    @field_validator("origins")
    @classmethod
    def _are_origins(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for origin in value:
            parts = urlsplit(origin)
            bare = f"{parts.scheme}://{parts.netloc}"
            if origin != "*" and not (parts.scheme and parts.netloc and origin == bare):
                raise ValueError(
                    f"{origin!r} is no origin: write scheme and host alone, as https://app.example"
                )
        return value


class Policy(PolicyModel):
    """The whole file."""

    targets: dict[str, TargetPolicy] = Field(min_length=1)
    models: dict[str, ModelPolicy] = Field(default_factory=dict)
    keys: dict[str, KeyPolicy] = Field(default_factory=dict)
    tenants: dict[str, TenantPolicy] = Field(default_factory=dict)
    classify: ClassifyPolicy = ClassifyPolicy()
    batch: BatchPolicy = BatchPolicy()
    head_hold: Duration = 10.0
    cors: CorsPolicy = CorsPolicy()

    def served(self) -> dict[str, tuple[str, ...]]:
        """Public model name → names of the targets that serve it, in the file's order.

        Aliases come after the names they stand for.
        """
        served: dict[str, tuple[str, ...]] = {}
        for name, target in self.targets.items():
            for model in target.models:
                served[model] = (*served.get(model, ()), name)
        for model, rules in self.models.items():
            for alias in rules.aliases:
                served[alias] = served.get(model, ())
        return served

    def canonical(self) -> dict[str, str]:
        """Alias → the name that targets know it by."""
        return {alias: name for name, rules in self.models.items() for alias in rules.aliases}

    def quota(self, tenant: str) -> Quota:
        """What the tenant may have queued for one model."""
        known = self.tenants.get(tenant) or TenantPolicy()
        return Quota(known.max_queued_rows or 0, known.max_queued_tokens or 0)

    def weight(self, tenant: str) -> float:
        """The tenant's weight; 1 when it is not declared."""
        known = self.tenants.get(tenant)
        return known.weight if known else 1.0
