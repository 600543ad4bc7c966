"""Limits in the headers of answers."""

from datetime import UTC, datetime

import pytest

from gateway.core.rates import RateLimit, RateLimits
from gateway.providers.rates import rates_of

NOW = 1_760_000_000.0


def _read(**headers: str) -> RateLimits | None:
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return rates_of(raw, lambda: NOW)


def test_the_usual_headers() -> None:
    """Limit, rest and reset, for requests and tokens, whatever the case of the names."""
    found = _read(
        X_RateLimit_Limit_Requests="60",
        x_ratelimit_remaining_requests="59",
        x_ratelimit_reset_requests="1s",
        x_ratelimit_limit_tokens="150000",
        x_ratelimit_remaining_tokens="149984",
        x_ratelimit_reset_tokens="6m0.5s",
    )
    assert found == RateLimits(RateLimit(60, 59, 1.0), RateLimit(150000, 149984, 360.5))


def test_anthropics_headers() -> None:
    """The same figures under other names; a reset is a time of day."""
    at = datetime.fromtimestamp(NOW + 30, UTC).isoformat().replace("+00:00", "Z")
    found = _read(
        anthropic_ratelimit_requests_limit="50",
        anthropic_ratelimit_requests_remaining="0",
        anthropic_ratelimit_requests_reset=at,
    )
    assert found == RateLimits(RateLimit(50, 0, 30.0))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("20ms", 0.02), ("12", 12.0), ("1h2m", 3720.0), ("soon", None), ("", None), ("1x", None)],
)
def test_spans(text: str, seconds: float | None) -> None:
    """What cannot be read is not said."""
    assert _read(x_ratelimit_reset_tokens=text) == RateLimits(tokens=RateLimit(reset=seconds))


def test_no_limits() -> None:
    """Other headers say nothing; figures that are none are left out."""
    assert _read(content_type="text/plain") is None
    assert (
        _read(x_ratelimit_limit_requests="nan", x_ratelimit_remaining_requests="-1") == RateLimits()
    )
