"""The data directory, there and writable before anything starts."""

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

from gateway.core.errors import ConfigError, StartError


def ready_data_dir(folder: Path) -> None:
    """Make ``folder`` when it is not there. Raises ConfigError when it cannot be used."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        if folder.exists():
            raise ConfigError(f"the data directory {folder} is no directory") from None
        reason = error.strerror
        raise ConfigError(f"the data directory {folder} cannot be made: {reason}") from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ConfigError(f"the data directory {folder} may not be written")


@contextlib.contextmanager
def room_in(folder: Path) -> Iterator[None]:
    """Turn what a full disk does to a start into a StartError."""
    try:
        yield
    except OSError as error:
        if error.errno not in {errno.ENOSPC, errno.EDQUOT}:
            raise
        raise StartError(f"the data directory {folder} has no room: {error.strerror}") from None
