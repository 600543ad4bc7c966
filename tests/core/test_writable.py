"""Files that a command is to write."""

import errno
import os
from pathlib import Path

import pytest

from gateway.core.errors import ConfigError
from gateway.core.writable import check_writable, writing


def test_what_cannot_be_made_is_told(tmp_path: Path) -> None:
    """No folder, a folder in its place; a file that is there may be written again."""
    with pytest.raises(ConfigError, match="folder does not exist"):
        check_writable(tmp_path / "none" / "x")
    with pytest.raises(ConfigError, match="cannot be written"):
        check_writable(tmp_path)
    (tmp_path / "x").touch()
    check_writable(tmp_path / "x")


def test_a_full_disk_is_told_and_what_to_do(tmp_path: Path) -> None:
    """Not as a traceback."""
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    said = r"x: cannot be written: No space left .*; do that"
    with pytest.raises(ConfigError, match=said), writing(tmp_path / "x", "; do that"):
        raise full
