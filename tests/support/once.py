"""What is made once and kept beside the environment, also when many test processes want it."""

import fcntl
import sys
from collections.abc import Callable
from pathlib import Path


def made_once(name: str, stamp: str, make: Callable[[Path], object]) -> Path:
    """The folder ``name``, made by ``make`` unless one with this stamp is there."""
    folder = Path(sys.prefix) / "share" / name
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / stamp).exists():
            make(folder)
            (folder / stamp).touch()
    return folder
