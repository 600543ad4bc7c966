"""A running gateway can be found by its data directory."""

from pathlib import Path

from gateway.bootstrap.announce import Announcement, announce, announced, withdraw


def test_what_was_announced_is_read(tmp_path: Path) -> None:
    """Another process sees the same values."""
    mine = Announcement("http://127.0.0.1:1/v1", 1, {"local": "http://127.0.0.1:2/v1"})
    announce(tmp_path, mine)
    assert announced(tmp_path) == mine


def test_nothing_or_rubbish_is_nothing(tmp_path: Path) -> None:
    """A missing or broken file is no gateway."""
    assert announced(tmp_path) is None
    (tmp_path / "gateway.json").write_text("{")
    assert announced(tmp_path) is None


def test_only_ones_own_is_withdrawn(tmp_path: Path) -> None:
    """A gateway that was replaced leaves its successor's file alone."""
    announce(tmp_path, Announcement("http://127.0.0.1:1/v1", 1))
    withdraw(tmp_path)
    assert announced(tmp_path) is not None
