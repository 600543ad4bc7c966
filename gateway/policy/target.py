"""One target in the policy: where it is, what it serves, and how it may be used."""

import re
from typing import Final, Literal

from pydantic import Field, SecretStr, field_validator, model_validator

from gateway.core.lanes import Lane
from gateway.core.load import ITL_TARGET, ITL_TARGET_RANKED, LONGEST_GAP
from gateway.core.price import Price
from gateway.core.targets import Timeouts
from gateway.policy.lanes import Lanes
from gateway.policy.values import Duration, PolicyModel

_ENGINES: Final = ("vllm", "sglang", "local")
_SCALES: Final = ("lower", "higher", "dynamo")
_OBJECT_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")


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
    """Full jitter: the bound doubles from ``base`` to ``cap``, the delay is drawn below it.

    Beyond a few, retries are at most the share ``budget`` of a target's calls.
    """

    attempts: int = Field(default=4, ge=1, le=20)
    base: Duration = 0.25
    cap: Duration = 8.0
    budget: float = Field(default=0.2, ge=0, le=1)
    resend_unknown: bool = False


class BreakerPolicy(PolicyModel):
    """When a target that fails is left out; ``breaker: off``: never.

    After ``failures`` failed calls in a row, or when more than the share ``share`` of the last
    calls failed, it gets one call after ``pause`` seconds; each one that fails doubles the pause up
    to ``longest``, one that works brings it back. In the share the newest call weighs a twentieth,
    so that 14 failures at least make a half; a share of 1 is never passed.
    """

    off: bool = False
    failures: int = Field(default=5, ge=1)
    share: float = Field(default=0.5, gt=0, le=1)
    pause: Duration = Field(default=1.0, gt=0)
    longest: Duration = Field(default=30.0, gt=0)

    @model_validator(mode="before")
    @classmethod
    def _plain_off(cls, value: object) -> object:
        if isinstance(value, str) and value != "off":
            raise ValueError("the only word is off; give a mapping for more")
        if value is not False and not isinstance(value, str | dict | BreakerPolicy):
            raise ValueError("give off, or a mapping such as {failures: 5}")
        return {"off": True} if value is False or value == "off" else value


class WorkerPolicy(PolicyModel):
    """Settings of a bundled worker.

    ``rows`` sequences decode at once, of which ``reserved_rows`` are kept free of offline work;
    ``context`` tokens per sequence; ``itl_target`` is the step time aimed at while an interactive
    sequence decodes; ``prefill_chunk`` prompt tokens are processed per step beside decodes.
    """

    rows: int = Field(default=72, ge=1, le=1024)
    reserved_rows: int = Field(default=8, ge=0)
    context: int = Field(default=2048, ge=64, le=1_048_576)
    itl_target: Duration = Field(default=0.05, gt=0, le=LONGEST_GAP)
    prefill_chunk: int = Field(default=256, ge=16)
    threads: int | None = Field(default=None, ge=1)


class RateLimits(PolicyModel):
    """What the provider allows, for each of our keys there. Unset: found out while batches run."""

    requests_per_minute: float | None = Field(default=None, ge=1)
    tokens_per_minute: float | None = Field(default=None, ge=1)


class PricePolicy(PolicyModel):
    """Of a million tokens, in a currency of your own; ``cached`` as ``input`` unless it is said."""

    input: float = Field(ge=0)
    output: float = Field(default=0.0, ge=0)
    cached: float | None = Field(default=None, ge=0)

    def to_price(self) -> Price:
        """As the value that counts."""
        return Price(self.input, self.output, self.input if self.cached is None else self.cached)


class EnginePolicy(PolicyModel):
    """Flags with which an engine was started; advice is reckoned from them."""

    max_num_seqs: int = Field(default=256, ge=1, le=65_536)
    max_num_batched_tokens: int = Field(default=2048, ge=1, le=1_048_576)


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
    mapping from the public name to the name the target knows. Of several ``api_keys`` the next one
    is used when a key is refused or throttled. Targets of a model with a ``weight`` share its
    calls; the others are tried in the file's order. ``context`` is the longest prompt and answer in
    tokens, ``health`` a path below the server's root that answers 200 while it can work.
    ``kind: azure`` sends the key as Azure wants it; the names it knows are deployments.
    ``responses`` says that the target has the Responses API; for others it is translated.
    ``priority`` is the scale on which the engine ranks calls (``true``: lower is sooner),
    ``objectives`` are names of an inference gateway's objectives for our lanes.
    """

    kind: Literal["openai", "vllm", "sglang", "azure", "local"] = "openai"
    base_url: str | None = None
    api_version: str | None = Field(default=None, min_length=1)
    api_key: SecretStr | None = None
    api_keys: tuple[SecretStr, ...] = ()
    limits: RateLimits = RateLimits()
    engine: EnginePolicy = EnginePolicy()
    price: PricePolicy | None = None
    batch_api: BatchApiPolicy | None = None
    models: dict[str, str] = Field(min_length=1)
    lanes: Lanes = Lanes()
    timeouts: TimeoutPolicy = TimeoutPolicy()
    retry: RetryPolicy = RetryPolicy()
    headers: dict[str, SecretStr] = Field(default_factory=dict)
    priority: bool | Literal["lower", "higher", "dynamo"] | None = None
    objectives: dict[Lane, str] = Field(default_factory=dict)
    stream_usage: bool = True
    responses: bool = False
    weight: float | None = Field(default=None, ge=0.001, le=1_000_000)
    context: int | None = Field(default=None, ge=1)
    breaker: BreakerPolicy = BreakerPolicy()
    health: str | None = Field(default=None, pattern="^/")
    worker: WorkerPolicy = WorkerPolicy()

    @model_validator(mode="before")
    @classmethod
    def _models_list_to_mapping(cls, value: object) -> object:
        if isinstance(value, dict) and isinstance(value.get("models"), list):
            return {**value, "models": {str(name): str(name) for name in value["models"]}}
        return value

    @field_validator("models", mode="before")
    @classmethod
    def _are_names(cls, value: object) -> object:
        if not isinstance(value, dict):
            raise ValueError("give a list of names, or a mapping: public name: the target's name")  # noqa: TRY004 - pydantic's
        return value

    @field_validator("priority", mode="before")
    @classmethod
    def _is_a_scale(cls, value: object) -> object:
        if value is None or isinstance(value, bool) or value in _SCALES:
            return value
        raise ValueError("give true, false, lower, higher or dynamo")

    @field_validator("objectives")
    @classmethod
    def _are_object_names(cls, value: dict[Lane, str]) -> dict[Lane, str]:
        for name in value.values():
            if not _OBJECT_NAME.fullmatch(name):
                raise ValueError(f"{name!r} is no name of an object: a-z, 0-9, '-' and '.'")
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
        return self.kind in _ENGINES or not str(self.base_url).startswith("https:")

    @property
    def itl_target(self) -> float:
        """The gap between tokens of interactive calls that offline rows leave here, in seconds."""
        said = self.lanes.batch.itl_target
        return said or (ITL_TARGET_RANKED if self.priority else ITL_TARGET)

    @property
    def rank_scale(self) -> str | None:
        """How calls tell the rank of their lane: ``lower``, ``higher``, ``dynamo`` or not."""
        if self.priority is None:
            return "lower" if self.kind == "local" else None
        if isinstance(self.priority, bool):
            return "lower" if self.priority else None
        return self.priority
