"""What one lease may hold, and for whom."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LeaseLimits:
    """``worker`` names this process; ``quantum`` rows go to one tenant before the next."""

    worker: str
    rows: int
    tokens: int
    ttl_ms: int
    quantum: int
