"""How busy a target is with calls that somebody waits for."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TargetLoad:
    """Interactive calls at one target.

    ``calls`` are under way or wait for a place; ``prefilling`` of them are streams without a first
    token. ``ttft_s`` and ``itl_s`` are the means over the calls that ended since the last word;
    None when none did.
    """

    calls: int = 0
    prefilling: int = 0
    ttft_s: float | None = None
    itl_s: float | None = None
