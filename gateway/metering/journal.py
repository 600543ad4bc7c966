"""The journal of a process: intents and records as JSON lines in files of bounded size.

Lines are made and handed to the operating system at most ``flush_seconds`` after the call
(sooner when many are waiting); nothing waits for the disk. The intent of a call that ended before
that is left out, for its record says all. So a killed process loses at most the
lines of its last ``flush_seconds``, a machine that loses power what its system had not written.

A file is locked while its process writes it. A file that another can lock is therefore finished:
ended properly (its last line is ``{"end": …}``, or there is a next file), or left by a process
that died. Calls that are open when a file is full are noted again in the next one, so each file
stands alone.
"""

import asyncio
import contextlib
import errno
import fcntl
import logging
import os
from collections.abc import Iterator
from pathlib import Path

import orjson

from gateway.core.ids import new_id
from gateway.metering.record import CallIntent, CallRecord, intent_to_json

log = logging.getLogger(__name__)

FLUSH_SECONDS = 0.05
ROTATE_BYTES = 16 * 2**20
SUFFIX = ".jsonl"
_FLUSH_CALLS = 128
_MOST_WAITING = 100_000


class Journal:
    """Appends lines; use it from one event loop. It makes and locks its first file at once."""

    def __init__(
        self,
        folder: Path,
        *,
        flush_seconds: float = FLUSH_SECONDS,
        rotate_bytes: int = ROTATE_BYTES,
    ) -> None:
        self._folder = folder
        self._flush_seconds = flush_seconds
        self._rotate_bytes = rotate_bytes
        self._id = new_id("journal", 16)
        self._open: dict[str, CallIntent] = {}
        self._waiting: list[CallIntent | CallRecord] = []
        self._unwritten = b""
        self._timer: asyncio.TimerHandle | None = None
        self._failing = False
        folder.mkdir(parents=True, exist_ok=True)
        self._handle = -1
        self._begin(0)

    @property
    def path(self) -> Path:
        """The file that is being written."""
        return self._path

    @property
    def written(self) -> int:
        """Bytes of that file that the operating system has."""
        return self._written

    def opened(self, intent: CallIntent) -> None:
        """Keep the intent."""
        self._open[intent.id] = intent
        self._append(intent)

    def closed(self, record: CallRecord) -> None:
        """Keep the record."""
        self._open.pop(record.intent.id, None)
        self._append(record)

    def flush(self) -> None:
        """Hand what waits to the operating system. A full disk is logged and tried again."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._write():
            self._later()
        elif self._written >= self._rotate_bytes:
            self._rotate()

    def close(self) -> None:
        """Write what waits and end the file. Calls still open become interrupted ones."""
        if self._handle < 0:
            return
        self._write(b"" if self._open else _end_line(None))
        if self._timer is not None:
            self._timer.cancel()
        os.close(self._handle)
        self._handle = -1

    def _append(self, item: CallIntent | CallRecord) -> None:
        if len(self._waiting) >= _MOST_WAITING or self._handle < 0:
            log.error("the journal cannot be written: a record is lost")
            return
        self._waiting.append(item)
        if len(self._waiting) >= _FLUSH_CALLS and not self._failing:
            self.flush()
        elif self._timer is None:
            self._later()

    def _later(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._flush_seconds, self.flush)

    def _write(self, last: bytes = b"") -> bool:
        """Whether nothing is left waiting."""
        # After a failure what waits grows as objects, not as text that is copied each time.
        if self._failing and not self._drain():
            return False
        self._unwritten += b"".join(self._lines()) + last
        self._waiting.clear()
        return self._drain()

    def _drain(self) -> bool:
        text, sent = self._unwritten, 0
        try:
            while sent < len(text):
                sent += os.write(self._handle, text[sent:] if sent else text)
        except OSError as error:
            if not self._failing:
                log.exception("the journal cannot be written: %s", error.strerror)
            self._failing = True
        else:
            self._failing = False
        self._written += sent
        self._unwritten = text[sent:]
        return not self._failing

    def _lines(self) -> Iterator[bytes]:
        for item in self._waiting:
            if isinstance(item, CallRecord):
                yield orjson.dumps(item.to_json(), option=orjson.OPT_APPEND_NEWLINE)
            elif item.id in self._open:
                yield orjson.dumps(intent_to_json(item), option=orjson.OPT_APPEND_NEWLINE)

    def _rotate(self) -> None:
        """Go on in a new file. If none can be made, in this one until the next flush."""
        old = self._handle
        try:
            self._begin(self._number + 1)
        except OSError as error:
            log.exception("no new journal file can be made: %s", error.strerror)
            return
        with contextlib.suppress(OSError):
            os.write(old, _end_line(self._number))
        os.close(old)

    def _begin(self, number: int) -> None:
        """Start a file with the open calls in it.

        It gets its name when it is locked and whole, so nobody takes it for one that was left;
        from then on the one before it counts as ended.
        """
        path = self._folder / file_name(self._id, number)
        fresh = path.with_name(f"{path.name}.new")
        head = orjson.dumps({"journal": self._id, "pid": os.getpid(), "version": 1}) + b"\n"
        again = (orjson.dumps(intent_to_json(i)) + b"\n" for i in self._open.values())
        text = head + b"".join(again)
        handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _write_whole(handle, text)
            fresh.rename(path)
        except OSError:
            os.close(handle)
            raise
        self._handle, self._path, self._number = handle, path, number
        self._written = len(text)


def file_name(journal: str, number: int) -> str:
    """The name of a journal's file; files of one journal sort in their order."""
    return f"{journal}.{number:06d}{SUFFIX}"


def _write_whole(handle: int, text: bytes) -> None:
    if os.write(handle, text) < len(text):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _end_line(following: int | None) -> bytes:
    return orjson.dumps({"end": following}) + b"\n"
