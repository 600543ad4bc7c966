"""What the client did and learned, on disk before and after each call."""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class History:
    """One line per event. ``invoke`` comes before a call, ``ok`` or ``unknown`` after it."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def note(self, event: str, op: str, **about: Any) -> None:
        """Append a line."""
        line = json.dumps({"at": round(time.time(), 3), "event": event, "op": op, **about})  # noqa: TID251 - for people
        os.write(self._descriptor, line.encode() + b"\n")

    def close(self) -> None:
        """No more lines."""
        os.close(self._descriptor)


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The whole lines of a file of JSON lines; none when there is no such file.

    A last line without its end was being written when its writer was killed.
    """
    if path.exists():
        for line in path.read_bytes().split(b"\n")[:-1]:
            if line:
                yield json.loads(line)
