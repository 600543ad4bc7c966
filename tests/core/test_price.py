"""What calls cost."""

import pytest

from gateway.core.price import Price, millionths
from gateway.core.usage import Usage


def test_each_kind_of_token_has_its_price() -> None:
    """Cached ones are part of the prompt, and not paid twice."""
    price = Price(input=1.0, output=4.0, cached=0.5)
    assert price.of(Usage(1000, 500, cached=400)) == pytest.approx(0.0028)
    assert price.of(Usage()) == 0


def test_the_most_is_at_the_dearest_price() -> None:
    """Whatever the tokens turn out to be."""
    assert Price(1.0, 4.0, 0.5).most(1_000_000) == 4.0
    assert Price(1.0, 0.0, 2.0).most(500_000) == 1.0


def test_whole_numbers_are_rounded_up() -> None:
    """A cost is never counted as less than it is."""
    assert [millionths(cost) for cost in (0, 0.5, 1e-7)] == [0, 500_000, 1]
