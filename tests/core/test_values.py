"""Values: compared and hashed by their members."""

from dataclasses import field, replace

from gateway.core.values import value


@value
class Pair:
    """Two members, one with a default."""

    one: int
    two: list[int] = field(default_factory=list)


@value
class Single:
    """One member."""

    one: int = 1


def test_a_value_is_its_members() -> None:
    """Equal members make equal values, also as keys; a changed copy leaves the first alone."""
    assert Pair(1) == Pair(1, [])
    assert {Single(1): "a"}[Single()] == "a"
    first = Pair(1)
    assert (replace(first, one=2).one, first.one) == (2, 1)
    assert not hasattr(first, "__dict__")
