"""Settings: the only place that reads the environment.

Every field is ``HEADWAY_<NAME>`` in the environment. Read once at start, frozen, then passed by
constructor.
"""

import os
from collections.abc import Mapping
from ipaddress import ip_network
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import (
    AliasChoices,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic_settings import BaseSettings, SettingsConfigDict

from gateway.core.errors import ConfigError

_MAY_BE_EMPTY = {"fault_injection", "trusted_proxies"}


class Settings(BaseSettings):
    """How one process runs. What it serves is the policy's business."""

    model_config = SettingsConfigDict(
        env_prefix="HEADWAY_", frozen=True, extra="ignore", populate_by_name=True
    )

    data_dir: Path = Field(
        default=Path.home() / ".headway", description="files, batches, journal, embedded queue"
    )
    policy: Path | None = Field(
        default=None, description="policy YAML; unset: the built-in default policy"
    )
    redis_url: SecretStr | None = Field(
        default=None,
        validation_alias=AliasChoices("HEADWAY_REDIS_URL", "REDIS_URL", "redis_url"),
        description="Redis or Valkey >= 7.0; unset: serve supervises its own server",
    )
    server_bin: Path | None = Field(
        default=None, description="Valkey or Redis server binary for the embedded queue"
    )
    server_maxmemory: str = Field(default="512mb", description="memory limit of that server")
    server_fsync: str = Field(
        default="everysec", pattern="^(everysec|always)$", description="appendfsync of that server"
    )
    api_key: SecretStr | None = Field(
        default=None, description="the one client key of a simple set-up; unset: one is made"
    )
    host: str = Field(default="127.0.0.1", description="listening address")
    port: int = Field(default=8000, ge=0, le=65535, description="listening port; 0 picks one")
    workers: int = Field(
        default=1, ge=1, le=64, description="gateway processes that serve the port together"
    )
    trusted_proxies: str = Field(
        default="",
        description="addresses or networks, with commas, whose X-Forwarded-For and -Proto count",
    )
    log_level: str = Field(
        default="info", pattern="^(debug|info|warning|error)$", description="log level"
    )
    grace_seconds: float = Field(
        default=30.0, ge=0, description="time running calls get to finish after SIGTERM"
    )
    receive_seconds: float = Field(
        default=30.0,
        gt=0,
        description="time for a request's head, each pause in its body, and what is left of a body "
        "that is refused",
    )
    send_seconds: float = Field(
        default=60.0, gt=0, description="time in which a caller may take nothing of its answer"
    )
    max_body_bytes: int = Field(
        default=32 * 2**20, ge=1024, description="largest JSON request body"
    )
    max_body_parts: int = Field(
        default=50_000, ge=100, description="most objects and arrays in a JSON request body"
    )
    max_answer_bytes: int = Field(
        default=256 * 2**20,
        ge=1024,
        description="longest answer of a target that is not streamed",
    )
    max_upload_bytes: int = Field(
        default=200 * 2**20, ge=1024, description="largest file for purpose=batch"
    )
    dispatchers: int = Field(
        default=1, ge=0, le=1, description="dispatchers serve starts; 0: they run elsewhere"
    )
    lease_seconds: float = Field(
        default=60.0,
        gt=0,
        description="visibility timeout of what dispatchers hold: rows, validations, final files",
    )
    min_window_seconds: float = Field(
        default=3600.0, gt=0, description="shortest completion_window accepted"
    )
    retry_base_seconds: float = Field(
        default=1.0, gt=0, description="first bound of the backoff of batch rows"
    )
    retry_cap_seconds: float = Field(
        default=60.0, gt=0, description="largest bound of the backoff of batch rows"
    )
    row_attempts: int = Field(
        default=5, ge=1, description="error tries of a batch row before it ends in the error file"
    )
    rate_minute_seconds: float = Field(
        default=60.0,
        gt=0,
        description="length of a minute in the rate limits of targets; tests shorten it",
    )
    reap_interval_seconds: float = Field(
        default=1.0, gt=0, description="how often a dispatcher looks for expired leases"
    )
    record_days: float = Field(
        default=30.0, gt=0, description="how long call records stay readable in the data directory"
    )
    disk_free_bytes: int = Field(
        default=256 * 2**20, ge=0, description="new work leaves that much disk free"
    )
    disk_limit_bytes: int = Field(
        default=0,
        ge=0,
        description="new work is refused once the data directory has it; 0: never",
    )
    batch_days: float = Field(
        default=30.0,
        gt=0,
        description="how long an ended batch is kept, at least; never shorter than its files",
    )
    response_days: float = Field(
        default=30.0, gt=0, le=60, description="how long stored responses are kept"
    )
    orphan_seconds: float = Field(
        default=86_400.0, gt=0, description="age at which files without a record are removed"
    )
    sweep_seconds: float = Field(
        default=600.0, gt=0, description="how often a dispatcher removes what has run out"
    )
    webhook_seconds: float = Field(
        default=86_400.0, gt=0, description="how long a webhook that is not taken is sent again"
    )
    webhook_base_seconds: float = Field(
        default=5.0, gt=0, description="first bound of the pause between its tries"
    )
    webhooks_allow_private: bool = Field(
        default=False, description="webhooks may go to private and loopback addresses"
    )
    model_path: Path | None = Field(
        default=None,
        description="GGUF file of the bundled worker, or `shape:NAME`; unset: the packaged model",
    )
    device: str = Field(
        default="auto",
        pattern="^(auto|cpu|cuda)$",
        description="where the bundled worker computes; auto: on a GPU that torch sees, else cpu",
    )
    otlp_endpoint: str | None = Field(
        default=None,
        description="OpenTelemetry collector (OTLP over HTTP) for metrics and traces",
    )
    trace_ratio: float = Field(
        default=0.05, ge=0, le=1, description="share of calls traced, unless the caller decides"
    )
    worker_log: Path | None = Field(
        default=None,
        description="the bundled worker notes each finished request here: tokens, no text",
    )
    fault_injection: str = Field(
        default="", description="test only: faults of the bundled worker, such as nan_row"
    )

    @field_validator("data_dir")
    @classmethod
    def _absolute(cls, value: Path) -> Path:
        """One place, whatever directory a child process works in."""
        return value.expanduser().absolute()

    @field_validator("*", mode="before")
    @classmethod
    def _not_empty(cls, value: object, info: ValidationInfo) -> object:
        """Empty is a mistake: no open door for a key, nor the working directory for a path."""
        text = value.get_secret_value() if isinstance(value, SecretStr) else value
        if isinstance(text, str) and not text.strip() and info.field_name not in _MAY_BE_EMPTY:
            raise ValueError("is set to an empty string; unset it or give it a value")
        return value

    @field_validator("trusted_proxies")
    @classmethod
    def _are_networks(cls, value: str) -> str:
        for part in filter(None, value.replace(" ", "").split(",")):
            ip_network(part, strict=False)
        return value

    @field_validator("redis_url")
    @classmethod
    def _is_url(cls, value: SecretStr | None) -> SecretStr | None:
        """Refused before anything starts, without repeating what may hold a password."""
        if value is not None and not _names_a_server(value.get_secret_value()):
            raise ValueError("must be a redis://, rediss:// or unix:// URL")
        return value


def load_settings(**overrides: object) -> Settings:
    """Settings of this process; ``overrides`` (from the command line) win over the environment.

    Raises ConfigError naming the variable when one is wrong, or the option that gave it.
    """
    given = {name: value for name, value in overrides.items() if value is not None}
    try:
        return Settings(**given)  # type: ignore[arg-type]  # checked by pydantic right here
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0]) if first["loc"] else "settings"
        option = f"--{name.replace('_', '-')}"
        variable = name if name.isupper() else f"HEADWAY_{name.upper()}"
        message = first["msg"].removeprefix("Value error, ")
        raise ConfigError(f"{option if name in given else variable}: {message}") from None


def _names_a_server(url: str) -> bool:
    parts = urlsplit(url)
    try:
        _ = parts.port
    except ValueError:
        return False
    if parts.scheme == "unix":
        return len(parts.path) > 1
    return parts.scheme in {"redis", "rediss"} and bool(parts.hostname)


def child_environment(extra: Mapping[str, str]) -> dict[str, str]:
    """The environment of a child process: this process's own with ``extra`` on top."""
    return {**os.environ, **extra}


def read_variable(name: str) -> str | None:
    """One variable of the environment, for ``${NAME}`` in a policy; None when it is not set."""
    return os.environ.get(name)
