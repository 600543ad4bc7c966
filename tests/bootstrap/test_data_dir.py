"""The data directory before anything starts."""

import errno
import os
from pathlib import Path

import pytest

from gateway.bootstrap.data_dir import ready_data_dir, room_in
from gateway.core.errors import ConfigError, StartError


def test_it_is_made(tmp_path: Path) -> None:
    """With what is above it; one that is there is left as it is."""
    folder = tmp_path / "a" / "b"
    ready_data_dir(folder)
    (folder / "kept").touch()
    ready_data_dir(folder)
    assert (folder / "kept").exists()


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    """Neither itself nor below it."""
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(ConfigError, match="is no directory"):
        ready_data_dir(file)
    with pytest.raises(ConfigError, match="cannot be made: Not a directory"):
        ready_data_dir(file / "below")


def test_one_that_may_not_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests may run as root, who may: the system's answer is played."""
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(ConfigError, match="may not be written"):
        ready_data_dir(tmp_path)


@pytest.mark.parametrize(("number", "wanted"), [(errno.ENOSPC, StartError), (errno.EIO, OSError)])
def test_a_full_disk_is_one_sentence(tmp_path: Path, number: int, wanted: type[Exception]) -> None:
    """What else a disk may do stays as it is."""
    with pytest.raises(wanted, match=os.strerror(number)), room_in(tmp_path):
        raise OSError(number, os.strerror(number))
