"""What the forecast says reaches the lanes."""

from gateway.dispatch.hurry import Hurry


def test_a_shard_is_late_until_it_is_not() -> None:
    """The last word of each shard counts."""
    hurry = Hurry()
    assert not hurry.any(["a", "b"])
    hurry.note("a", True)
    hurry.note("b", False)
    assert hurry.any(["b", "a"])
    assert not hurry.any(["b"])
    hurry.note("a", False)
    assert not hurry.any(["a", "b"])
