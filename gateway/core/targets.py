"""What an HTTP call to a target is made of, as plain values."""

from collections.abc import Callable
from dataclasses import dataclass, field

from gateway.core.values import value


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Limits of one attempt in seconds. ``idle`` is the longest gap between two bytes."""

    connect: float = 5.0
    first_byte: float = 300.0
    idle: float = 60.0
    total: float = 600.0


@value
class UpstreamCall:
    """One attempt: ``path`` is below the target's base URL, ``body`` is sent as it is.

    ``key`` is the place of the credential to use among those of the target; ``model`` is the name
    that the target knows, for those that have it in their addresses; ``head`` are whole header
    lines of this call. ``on_sent`` is called when the whole request has left this process.
    """

    path: str
    body: bytes
    request_id: str
    stream: bool = False
    timeouts: Timeouts = field(default_factory=Timeouts)
    key: int = 0
    model: str = ""
    head: bytes = b""
    on_sent: Callable[[], None] | None = None


@dataclass(frozen=True, slots=True)
class EngineLoad:
    """What an engine reports about itself: sequences, and the share of its KV memory in use."""

    running: float = 0.0
    waiting: float = 0.0
    kv_use: float = 0.0
