"""Files that a command is to write."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from gateway.core.errors import ConfigError


def check_writable(path: Path) -> None:
    """Raises ConfigError for a file that cannot be made, before work is spent on it.

    What is there and is no regular file, such as a device or a pipe, is never replaced.
    """
    with writing(path):
        if not path.parent.is_dir():
            raise ConfigError("cannot be written: its folder does not exist", file=path)
        if path.exists() and not path.is_file():
            raise ConfigError("cannot be written: it is no regular file", file=path)
        if _partial(path).exists() and not _partial(path).is_file():
            raise ConfigError("cannot be written: it is no regular file", file=_partial(path))
        if not os.access(path.parent, os.W_OK):
            raise ConfigError("cannot be written", file=path)


@contextmanager
def writing(path: Path, then: str = "") -> Iterator[None]:
    """Raises ConfigError in place of OSError; ``then`` says what can be done now."""
    try:
        yield
    except OSError as error:
        raise ConfigError(f"cannot be written: {error.strerror}{then}", file=path) from None


@contextmanager
def whole_file(path: Path, then: str = "") -> Iterator[BinaryIO]:
    """What is written is at ``path`` once all of it is; otherwise nothing of it stays.

    Raises ConfigError as ``writing`` does. A link stays one.
    """
    place = path.resolve()
    partial = _partial(place)
    with writing(path, then):
        try:
            with partial.open("wb") as sink:
                yield sink
            partial.replace(place)
        finally:
            partial.unlink(missing_ok=True)


def _partial(path: Path) -> Path:
    return path.with_name(path.name + ".part")
