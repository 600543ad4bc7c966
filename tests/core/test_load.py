"""A target's load as a value."""

from gateway.core.load import TargetLoad


def test_no_word_is_no_calls() -> None:
    """Without figures there are no calls and no latencies."""
    assert TargetLoad() == TargetLoad(0, 0, None, None)
