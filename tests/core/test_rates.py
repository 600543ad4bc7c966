"""What a provider says about its limits."""

from gateway.core.rates import RateLimit, RateLimits


def test_what_is_used_up() -> None:
    """The longest wait among the limits that have nothing left; none when nothing is known."""
    assert RateLimits(RateLimit(60, 0, 3.0), RateLimit(100, 0, 9.0)).exhausted == 9.0
    assert RateLimits(RateLimit(60, 5, 3.0), RateLimit(100, 0, None)).exhausted is None
    assert RateLimits().exhausted is None
