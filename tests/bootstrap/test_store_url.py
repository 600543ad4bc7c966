"""Which Redis a process uses."""

import json
from pathlib import Path

import pytest
from pydantic import SecretStr

from gateway.bootstrap.store_url import store_url
from gateway.core.errors import ConfigError
from gateway.core.settings import Settings


def test_the_setting_wins(tmp_path: Path) -> None:
    """A URL that was given is used as it is."""
    settings = Settings(data_dir=tmp_path, redis_url=SecretStr("redis://h"))
    assert store_url(settings) == "redis://h"


def test_else_the_server_of_the_data_directory(tmp_path: Path) -> None:
    """As its endpoint file says; without one there is an error that tells what to do."""
    settings = Settings(data_dir=tmp_path)
    with pytest.raises(ConfigError, match="HEADWAY_REDIS_URL"):
        store_url(settings)
    (tmp_path / "queue").mkdir()
    (tmp_path / "queue" / "endpoint.json").write_text(json.dumps({"socket": "/run/r.sock"}))
    assert store_url(settings) == "unix:///run/r.sock"
