"""The key of a simple set-up is made once."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gateway.core.errors import ConfigError
from gateway.tenancy.keyfile import load_or_make_key


def test_a_key_is_made_once_and_kept(tmp_path: Path) -> None:
    """The second start finds the first one's key; nobody else can read it."""
    folder = tmp_path / "data"
    key, made = load_or_make_key(folder)
    assert made
    assert load_or_make_key(folder) == (key, False)
    assert len(key) > 40
    assert (folder / "api_key").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in folder.iterdir()] == ["api_key"]


def test_processes_that_start_together_agree(tmp_path: Path) -> None:
    """One makes the key, all have the same."""
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(load_or_make_key, [tmp_path] * 8))
    assert len({key for key, _ in answers}) == 1
    assert sum(made for _, made in answers) == 1


def test_cfg_07_an_empty_key_file_is_refused(tmp_path: Path) -> None:
    """An empty key is a fault, not an open door."""
    (tmp_path / "api_key").write_text("\n")
    with pytest.raises(ConfigError, match="empty"):
        load_or_make_key(tmp_path)


def test_a_folder_that_cannot_be_made_is_a_config_error(tmp_path: Path) -> None:
    """One sentence, not a traceback."""
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="api_key"):
        load_or_make_key(tmp_path / "file")
