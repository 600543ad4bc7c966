"""The key of a simple set-up, made once and kept in the data directory."""

import os
import secrets
from pathlib import Path

from gateway.core.errors import ConfigError

_NAME = "api_key"


def load_or_make_key(data_dir: Path) -> tuple[str, bool]:
    """The key kept in ``data_dir``, and True when it was made just now.

    The file has mode 0600. Several processes that start at once agree on one key. Raises
    ConfigError when the file is empty or cannot be read or made.
    """
    path = data_dir / _NAME
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
        if path.exists():
            return _load(path), False
        return _make(path)
    except OSError as error:
        raise ConfigError(f"the key file cannot be used: {error.strerror}", file=path) from None


def _load(path: Path) -> str:
    key = path.read_text().strip()
    if not key:
        raise ConfigError("the key file is empty; remove it to get a new key", file=path)
    return key


def _make(path: Path) -> tuple[str, bool]:
    key = f"hw-{secrets.token_urlsafe(32)}"
    fresh = path.with_name(f"{_NAME}.{os.getpid()}.{secrets.token_hex(4)}")
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w") as file:
        file.write(f"{key}\n")
        file.flush()
        os.fsync(file.fileno())
    try:
        # A link is made only if the name is free: whole file or none, and the first one wins.
        path.hardlink_to(fresh)
    except FileExistsError:
        return _load(path), False
    finally:
        fresh.unlink()
    return key, True
