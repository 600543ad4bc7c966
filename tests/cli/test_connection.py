"""How client commands find their gateway."""

from pathlib import Path

import pytest

from gateway.bootstrap.announce import Announcement, announce
from gateway.cli.connection import connect
from gateway.core.errors import ConfigError


def test_address_and_key_are_found_in_the_data_directory(tmp_path: Path) -> None:
    """What is not given is read there."""
    announce(tmp_path, Announcement("http://127.0.0.1:9/v1", 1))
    with connect(None, None, tmp_path) as client:
        assert client._base_url == "http://127.0.0.1:9/v1"
    assert (tmp_path / "api_key").exists()


def test_no_gateway_is_told(tmp_path: Path) -> None:
    """The message says what to start."""
    with pytest.raises(ConfigError, match="headway serve"):
        connect(None, None, tmp_path)
