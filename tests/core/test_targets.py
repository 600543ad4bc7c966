"""Values of an HTTP call."""

from gateway.core.targets import Timeouts, UpstreamCall


def test_a_call_has_sane_limits_unless_told() -> None:
    """Every limit is finite."""
    assert UpstreamCall("/chat/completions", b"{}", "req_1").timeouts == Timeouts(5, 300, 60, 600)
