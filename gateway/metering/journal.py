"""The journal of a process: intents and records as JSON lines in files of bounded size.

Lines are handed to the operating system at most ``flush_seconds`` after the call (sooner when many
are waiting) and stand in a window of shared memory until then; nothing waits for the disk. The
intent of a call that ended before that is left out, for its record says all. So a killed process
loses no line, a machine that loses power what its system had not written.

A file is locked while its process writes it. A file that another can lock is therefore finished:
ended properly (its last line is ``{"end": …}``, or there is a next file), or left by a process
that died. Calls that are open when a file is full are noted again in the next one, so each file
stands alone.

Nothing here fails a call. A record that cannot be written as it is gets written as far as it can;
on a full disk lines wait, from the first one on, until there is room.
"""

import asyncio
import contextlib
import errno
import fcntl
import logging
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import orjson

from gateway.core.ids import new_id
from gateway.core.usage import MOST_TOKENS
from gateway.metering.record import CallIntent, CallRecord, intent_to_json
from gateway.metering.window import Window, window_of

log = logging.getLogger(__name__)

FLUSH_SECONDS = 0.05
ROTATE_BYTES = 16 * 2**20
SUFFIX = ".jsonl"
_FLUSH_CALLS = 128
_MOST_WAITING = 100_000
_DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


class Journal:
    """Appends lines; use it from one event loop.

    It makes and locks its first file at once, or as soon as the disk is not full any more.
    """

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
        self._waiting: list[tuple[CallIntent | CallRecord, bytes]] = []
        self._window: Window | None = None
        self._unwritten = b""
        self._timer: asyncio.TimerHandle | None = None
        self._failing = False
        self._closed = False
        self._lost = 0
        self._handle = -1
        self._written = 0
        self._number = 0
        self._path = folder / file_name(self._id, 0)
        self._start()

    @property
    def path(self) -> Path:
        """The file that is being written, or will be when there is room."""
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
        if self._closed:
            return
        self._closed = True
        if not self._write(b"" if self._open else _end_line(None)):
            log.error("the journal ends without its last lines: they cannot be written")
        if self._timer is not None:
            self._timer.cancel()
        if self._handle >= 0:
            os.close(self._handle)
        self._handle = -1
        if self._window is not None and not self._failing:
            self._window.close()

    def _append(self, item: CallIntent | CallRecord) -> None:
        if len(self._waiting) >= _MOST_WAITING or self._closed:
            self._lose("the journal cannot be written")
            return
        line = self._made(item)
        self._waiting.append((item, line))
        full = self._window is not None and not self._window.put(line)
        if (full or len(self._waiting) >= _FLUSH_CALLS) and not self._failing:
            self.flush()
        elif self._timer is None:
            self._later()

    def _later(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._flush_seconds, self.flush)

    def _write(self, last: bytes = b"") -> bool:
        """Whether nothing is left waiting."""
        if self._handle < 0 and not self._start():
            return False
        # After a failure what waits grows as objects, not as text that is copied each time.
        if self._failing and not self._drain():
            return False
        waiting, self._waiting = self._waiting, []
        self._unwritten += b"".join(self._needed(waiting)) + last
        if not self._drain():
            return False
        if self._window is not None:
            self._window.clear()
        return True

    def _drain(self) -> bool:
        text, sent = self._unwritten, 0
        try:
            while sent < len(text):
                sent += os.write(self._handle, text[sent:] if sent else text)
        except OSError as error:
            self._fail(error)
        else:
            self._failing = False
        self._written += sent
        self._unwritten = text[sent:]
        return not self._failing

    def _fail(self, error: OSError) -> None:
        if not self._failing:
            log.error("the journal waits, it cannot be written: %s", error.strerror)
        self._failing = True

    def _needed(self, waiting: Iterable[tuple[CallIntent | CallRecord, bytes]]) -> Iterator[bytes]:
        """Without the intents of calls that have ended."""
        for item, line in waiting:
            if isinstance(item, CallRecord) or item.id in self._open:
                yield line

    def _made(self, item: CallIntent | CallRecord) -> bytes:
        try:
            return _line(item)
        except Exception:
            log.exception("a line of the journal cannot be made")
            if isinstance(item, CallRecord):
                self._lose("it has no line")
            return b""

    def _lose(self, reason: str) -> None:
        self._lost += 1
        log.error("%s: a record is lost, %d so far", reason, self._lost)

    def _start(self) -> bool:
        """Make the first file; False while there is none, as when the disk is full.

        Raises OSError for any other fault that is met at the very beginning.
        """
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._begin(0)
        except OSError as error:
            if not self._failing and error.errno not in _DISK_FULL:
                raise
            self._fail(error)
            return False
        self._failing = False
        return True

    def _rotate(self) -> None:
        """Go on in a new file. If none can be made, in this one until the next flush."""
        old = self._handle
        try:
            self._begin(self._number + 1)
        except OSError as error:
            log.error("no new journal file can be made: %s", error.strerror)  # noqa: TRY400 - nothing to trace
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
        text = head + b"".join(map(self._made, self._open.values()))
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
        if self._window is None:
            with contextlib.suppress(OSError):  # then a kill may cost the last lines
                self._window = Window(window_of(self._folder, self._id))


def file_name(journal: str, number: int) -> str:
    """The name of a journal's file; files of one journal sort in their order."""
    return f"{journal}.{number:06d}{SUFFIX}"


def _line(item: CallIntent | CallRecord) -> bytes:
    members = item.to_json() if isinstance(item, CallRecord) else intent_to_json(item)
    try:
        return orjson.dumps(members, option=orjson.OPT_APPEND_NEWLINE)
    except orjson.JSONEncodeError as error:
        log.warning("a line of the journal is made smaller: %s", error)
        return orjson.dumps(_writable(members), option=orjson.OPT_APPEND_NEWLINE)


def _writable(value: Any) -> Any:
    """``value`` with numbers within bounds, texts that UTF-8 has, and nothing else."""
    if isinstance(value, dict):
        return {name: _writable(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_writable(item) for item in value]
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    if isinstance(value, int) and not isinstance(value, bool):
        return max(-MOST_TOKENS, min(value, MOST_TOKENS))
    return value if isinstance(value, bool | float) else None


def _write_whole(handle: int, text: bytes) -> None:
    if os.write(handle, text) < len(text):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _end_line(following: int | None) -> bytes:
    return orjson.dumps({"end": following}) + b"\n"
