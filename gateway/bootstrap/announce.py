"""Where a running gateway can be found: ``gateway.json`` in its data directory."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

_NAME = "gateway.json"


@dataclass(frozen=True, slots=True)
class Announcement:
    """What other processes on this machine may know about the gateway; no secret in it."""

    base_url: str
    pid: int
    local: Mapping[str, str] = field(default_factory=dict)


def announce(data_dir: Path, announcement: Announcement) -> None:
    """Write it, whole or not at all."""
    fresh = data_dir / f"{_NAME}.{os.getpid()}"
    fresh.write_text(json.dumps(asdict(announcement)))
    fresh.replace(data_dir / _NAME)


def withdraw(data_dir: Path) -> None:
    """Remove it, when it is still ours."""
    known = announced(data_dir)
    if known is not None and known.pid == os.getpid():
        (data_dir / _NAME).unlink(missing_ok=True)


def announced(data_dir: Path) -> Announcement | None:
    """What the gateway of this data directory announced last; None: nothing readable."""
    try:
        return Announcement(**json.loads((data_dir / _NAME).read_text()))
    except (OSError, ValueError, TypeError):
        return None
