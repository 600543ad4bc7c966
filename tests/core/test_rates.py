"""What a provider says about its limits."""

from gateway.core.rates import Quota, Rates


def test_what_is_used_up() -> None:
    """The longest wait among the limits that have nothing left; none when nothing is known."""
    assert Rates(Quota(60, 0, 3.0), Quota(100, 0, 9.0)).exhausted == 9.0
    assert Rates(Quota(60, 5, 3.0), Quota(100, 0, None)).exhausted is None
    assert Rates().exhausted is None
