"""Canonical paths."""

from gateway.core.endpoints import CHAT, below_prefix


def test_a_base_url_ends_where_the_path_below_it_begins() -> None:
    """A target is told the path without what its base URL has; other paths stay."""
    assert "https://host/v1" + below_prefix(CHAT) == "https://host/v1/chat/completions"
    assert below_prefix("/v2/x/v1") == "/v2/x/v1"
