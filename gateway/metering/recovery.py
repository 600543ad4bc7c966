"""Journal files that no process writes any more: taken over, completed, kept, removed."""

import contextlib
import fcntl
import logging
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from gateway.metering.journal import SUFFIX, file_name
from gateway.metering.record import (
    CallIntent,
    CallOutcome,
    CallRecord,
    CallStatus,
    intent_from_json,
)
from gateway.metering.unreported import unreported
from gateway.metering.window import SUFFIX as WINDOW
from gateway.metering.window import left_in, window_of

log = logging.getLogger(__name__)

SHIPPED = "shipped"
_NOTHING_SENT = 0
_END = orjson.dumps({"end": None}) + b"\n"
_TAIL_BYTES = 64
_DAY_SECONDS = 86400.0


def journal_files(folder: Path) -> list[Path]:
    """Journal files that are not shipped yet, in their order."""
    return sorted(folder.glob(f"*{SUFFIX}"))


@contextlib.contextmanager
def taken(path: Path) -> Iterator[bool]:
    """Hold a journal file; False when a process still writes it, or it is gone."""
    try:
        handle = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        yield False
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Between open and lock another process may have shipped it and moved it away.
        yield path.exists()
    except BlockingIOError:
        yield False
    finally:
        os.close(handle)


def lines_from(path: Path, offset: int, most: int) -> list[tuple[int, dict[str, Any]]]:
    """Whole lines from ``offset`` on, about ``most`` bytes, each with the offset of its end.

    A line that cannot be read (torn by a crash) comes as an empty one.
    """
    with path.open("rb") as file:
        file.seek(offset)
        text = file.read(most)
        if text and not text.endswith(b"\n"):
            text += file.readline()
    found: list[tuple[int, dict[str, Any]]] = []
    for line in text.splitlines(keepends=True):
        if not line.endswith(b"\n"):
            break
        offset += len(line)
        try:
            found.append((offset, orjson.loads(line)))
        except orjson.JSONDecodeError:
            found.append((offset, {}))
    return found


def complete(path: Path) -> int:
    """Close the calls that a dead process left open in the file we hold; returns its size.

    Such a call is ``interrupted``; its prompt is estimated, its completion lies between 0 and
    the record's ``bound``, if the call had one. Its end is the last sign of life of the process.
    Safe to repeat.
    """
    if _ended(path) or _has_next(path):
        return path.stat().st_size
    window = window_of(path.parent, path.name.partition(".")[0])
    last_sign = path.stat().st_mtime
    last_lines, still_open, torn = _left_open(path, left_in(window))
    records = [_interrupted(intent, last_sign) for intent in still_open]
    text = b"".join(orjson.dumps(r.to_json()) + b"\n" for r in records)
    with path.open("ab") as file:
        file.write((b"\n" if torn else b"") + last_lines + text + _END)
        file.flush()
        os.fsync(file.fileno())
    window.unlink(missing_ok=True)
    if records:
        log.warning("%d calls of a process that died are recorded as interrupted", len(records))
    return path.stat().st_size


def keep(path: Path, epoch: str) -> None:
    """Move a file whose records are all shipped to where records are kept.

    ``epoch`` names the totals that have them: when the store lost those, they are shipped again.
    """
    folder = path.parent / SHIPPED / epoch
    folder.mkdir(parents=True, exist_ok=True)
    path.rename(folder / path.name)


def take_back(folder: Path, epoch: str) -> int:
    """Make files that other totals than those of ``epoch`` had be shipped again; how many."""
    others = [path for path in _shipped(folder) if path.parent.name != epoch]
    for path in others:
        with contextlib.suppress(FileNotFoundError):  # another process was quicker
            path.rename(folder / path.name)
    for old in (folder / SHIPPED).glob("*/"):
        if old.name != epoch:
            with contextlib.suppress(OSError):  # it is filled by a process that has not noticed
                old.rmdir()
    return len(others)


def _shipped(folder: Path) -> list[Path]:
    return sorted((folder / SHIPPED).glob(f"*/*{SUFFIX}"), key=lambda path: path.name)


def sweep(folder: Path, now: float, days: float) -> int:
    """Remove shipped files that were last written over ``days`` days ago; returns how many."""
    limit = now - days * _DAY_SECONDS
    old = [path for path in _shipped(folder) if path.stat().st_mtime < limit]
    unnamed = [p for p in folder.glob("*.new") if p.stat().st_mtime < now - _DAY_SECONDS]
    windows = folder.glob(f"*{WINDOW}")
    shipped = [w for w in windows if not any(folder.glob(f"{w.stem}.*{SUFFIX}"))]
    for path in [*old, *unnamed, *shipped]:
        path.unlink(missing_ok=True)
    return len(old)


def read_records(folder: Path) -> Iterator[CallRecord]:
    """Every record that is kept on this machine, file by file. For operators, not the hot path."""
    for path in [*_shipped(folder), *journal_files(folder)]:
        with contextlib.suppress(FileNotFoundError):
            for _, line in lines_from(path, 0, path.stat().st_size):
                if "close" in line:
                    yield CallRecord.from_json(line)


def _left_open(path: Path, window: bytes) -> tuple[bytes, list[CallIntent], bool]:
    """Lines of the window that the file lacks, open calls of both, and if the last line is torn."""
    size = path.stat().st_size
    found: dict[str, CallIntent] = {}
    closed: set[str] = set()
    missing: list[bytes] = []
    whole = 0
    for whole, line in lines_from(path, 0, size):  # noqa: B007 - the last offset is wanted
        _follow(line, found, closed)
    for text in window.splitlines(keepends=True):
        line = orjson.loads(text)
        call = line.get("close") or line["open"]
        if call not in closed and ("close" in line or call not in found):
            missing.append(text)
            _follow(line, found, closed)
    return b"".join(missing), list(found.values()), whole < size


def _follow(line: Mapping[str, Any], found: dict[str, CallIntent], closed: set[str]) -> None:
    if "open" in line:
        found[line["open"]] = intent_from_json(line)
    elif "close" in line:
        found.pop(line["close"], None)
        closed.add(line["close"])


def _ended(path: Path) -> bool:
    """Whether the last line says so; the rest is not read."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _TAIL_BYTES))
        lines = file.read().splitlines(keepends=True)
    return bool(lines) and lines[-1].startswith(b'{"end":') and lines[-1].endswith(b"\n")


def _has_next(path: Path) -> bool:
    journal, number, _ = path.name.split(".")
    following = file_name(journal, int(number) + 1)
    kept = (path.parent / SHIPPED).glob(f"*/{following}")
    return (path.parent / following).exists() or any(kept)


def _interrupted(intent: CallIntent, ended_at: float) -> CallRecord:
    usage = unreported(intent.prompt_bytes)
    outcome = CallOutcome(CallStatus.INTERRUPTED, _NOTHING_SENT, usage, ended_at)
    return CallRecord(intent, outcome, bound=intent.max_completion or None)
