"""Files that a command is to write."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gateway.core.errors import ConfigError


def check_writable(path: Path) -> None:
    """Raises ConfigError for a file that cannot be made, before work is spent on it."""
    if not path.parent.is_dir():
        raise ConfigError("cannot be written: its folder does not exist", file=path)
    if path.is_dir() or not os.access(path.parent, os.W_OK):
        raise ConfigError("cannot be written", file=path)


@contextmanager
def writing(path: Path, then: str = "") -> Iterator[None]:
    """Raises ConfigError in place of OSError; ``then`` says what can be done now."""
    try:
        yield
    except OSError as error:
        raise ConfigError(f"cannot be written: {error.strerror}{then}", file=path) from None
