"""Files that a command is to write."""

import errno
import os
from pathlib import Path

import pytest

from gateway.core.errors import ConfigError
from gateway.core.writable import check_writable, whole_file, writing


def test_what_cannot_be_made_is_told(tmp_path: Path) -> None:
    """No folder, a folder in its place; a file that is there may be written again."""
    with pytest.raises(ConfigError, match="folder does not exist"):
        check_writable(tmp_path / "none" / "x")
    with pytest.raises(ConfigError, match="cannot be written"):
        check_writable(tmp_path)
    (tmp_path / "x").touch()
    check_writable(tmp_path / "x")


def test_what_is_no_file_is_not_replaced(tmp_path: Path) -> None:
    """A device, a pipe; a name that is too long, with the ending that it has meanwhile, is told."""
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/null")):
        with pytest.raises(ConfigError, match="no regular file"):
            check_writable(path)
    for length in (252, 260):
        with pytest.raises(ConfigError, match="too long"):
            check_writable(tmp_path / ("x" * length))


def test_a_file_is_whole_or_not_there(tmp_path: Path) -> None:
    """What was there stays when writing fails; a link stays a link."""
    kept, link = tmp_path / "kept", tmp_path / "link"
    kept.write_bytes(b"old")
    link.symlink_to(kept)
    with pytest.raises(ConfigError, match="No space"):
        _run_out_of_room(link)
    assert kept.read_bytes() == b"old"
    with whole_file(link) as sink:
        sink.write(b"new")
    assert link.is_symlink()
    assert kept.read_bytes() == b"new"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept", "link"]


def test_a_full_disk_is_told_and_what_to_do(tmp_path: Path) -> None:
    """Not as a traceback."""
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    said = r"x: cannot be written: No space left .*; do that"
    with pytest.raises(ConfigError, match=said), writing(tmp_path / "x", "; do that"):
        raise full


def _run_out_of_room(path: Path) -> None:
    with whole_file(path) as sink:
        sink.write(b"new")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
