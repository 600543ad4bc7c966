"""The same warning again and again, said once a minute."""

import logging
from dataclasses import dataclass

_SECONDS = 60.0
_MOST = 512


@dataclass(slots=True)
class _Said:
    """When an event was written last, and how often it came since."""

    at: float
    left_out: int = 0


class DuplicateFilter(logging.Filter):
    """Lets a warning or error through once a minute; the next one tells how many were left out."""

    def __init__(self) -> None:
        super().__init__()
        self._said: dict[tuple[str, str], _Said] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the event is written."""
        if record.levelno < logging.WARNING:
            return True
        text = record.getMessage()
        kind = record.exc_info[0].__name__ if record.exc_info and record.exc_info[0] else ""
        said = self._said.get((text, kind))
        if said is not None and record.created - said.at < _SECONDS:
            said.left_out += 1
            return False
        if said is not None and said.left_out:
            record.msg, record.args = f"{text} (and {said.left_out} times before)", ()
        self._note(text, kind, record.created)
        return True

    def _note(self, text: str, kind: str, now: float) -> None:
        if len(self._said) >= _MOST:
            self._said = {k: s for k, s in self._said.items() if now - s.at < _SECONDS}
        if len(self._said) < _MOST:
            self._said[text, kind] = _Said(now)
