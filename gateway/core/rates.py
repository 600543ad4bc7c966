"""What a provider says about its limits, as plain values."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RateLimit:
    """One limit: how much in a window, how much of it is left, and the seconds until it resets.

    None: the provider did not say.
    """

    limit: float | None = None
    remaining: float | None = None
    reset: float | None = None


@dataclass(frozen=True, slots=True)
class RateLimits:
    """The limits an answer tells of, for requests and for tokens."""

    requests: RateLimit = RateLimit()
    tokens: RateLimit = RateLimit()

    @property
    def exhausted(self) -> float | None:
        """Seconds until what is used up is there again; None when nothing is known to be."""
        used_up = [q for q in (self.requests, self.tokens) if q.remaining == 0]
        waits = [q.reset for q in used_up if q.reset is not None]
        return max(waits) if waits else None
