"""What stands in the window survives the process."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.metering.journal import Journal
from gateway.metering.record import CallRecord
from gateway.metering.recovery import complete, journal_files, read_records, sweep
from gateway.metering.window import Window, left_in, window_of
from tests.support.calls import an_intent, an_outcome

_DIES = """
import asyncio, os, sys
from pathlib import Path
from gateway.metering.journal import Journal
from gateway.metering.ledger import JournalLedger
from tests.support.calls import an_intent, an_outcome

async def main():
    ledger = JournalLedger(Journal(Path(sys.argv[1]), flush_seconds=60))
    first = ledger.open(an_intent("req_done"))
    ledger.open(an_intent("req_open"))
    first.close(an_outcome())
    os.kill(os.getpid(), 9)

asyncio.run(main())
"""


def test_lines_are_there_until_they_are_cleared(tmp_path: Path) -> None:
    """In order and whole; what does not fit is refused; closing leaves no file."""
    path = window_of(tmp_path, "j")
    window = Window(path, 10)
    assert window.put(b"one\n")
    assert window.put(b"two\n")
    assert not window.put(b"three\n")
    assert left_in(path) == b"one\ntwo\n"
    window.clear()
    assert left_in(path) == b""
    assert window.put(b"four\n")
    assert left_in(path) == b"four\n"
    window.close()
    assert left_in(path) == b""
    assert not path.exists()


def test_no_room_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk: no window, and no file that looks like one."""

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OSError, match="No space"):
        Window(window_of(tmp_path, "j"))
    assert not list(tmp_path.iterdir())


def test_a_killed_process_loses_no_line(tmp_path: Path) -> None:
    """A call that ended a moment before is exact; one that ran is interrupted; each is once."""
    command = [sys.executable, "-c", _DIES, str(tmp_path)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    [path] = journal_files(tmp_path)
    assert not list(read_records(tmp_path))
    complete(path)
    complete(path)
    assert [(r.intent.id, r.outcome.status) for r in read_records(tmp_path)] == [
        ("req_done", "ok"),
        ("req_open", "interrupted"),
    ]
    assert not _windows(tmp_path)


async def test_lines_that_the_file_has_too_count_once(tmp_path: Path) -> None:
    """A kill between writing the file and clearing the window."""
    journal = Journal(tmp_path, flush_seconds=60)
    window = window_of(tmp_path, journal.path.name.partition(".")[0])
    journal.opened(an_intent("req_1"))
    journal.flush()
    journal.opened(an_intent("req_2"))
    journal.closed(CallRecord(an_intent("req_1"), an_outcome()))
    left = window.read_bytes()
    journal.flush()
    path = journal.path
    os.close(journal._handle)
    window.write_bytes(left)
    complete(path)
    found = sorted((r.intent.id, r.outcome.status.value) for r in read_records(tmp_path))
    assert found == [("req_1", "ok"), ("req_2", "interrupted")]


async def test_a_window_goes_with_its_journal(tmp_path: Path) -> None:
    """An ended journal leaves none; one whose journal is shipped is swept."""
    journal = Journal(tmp_path)
    assert len(_windows(tmp_path)) == 1
    sweep(tmp_path, 1e12, 1)
    assert len(_windows(tmp_path)) == 1  # its journal is here
    journal.close()
    assert not _windows(tmp_path)
    Window(window_of(tmp_path, "journal_left"))
    sweep(tmp_path, 0, 1)
    assert not _windows(tmp_path)


def _windows(folder: Path) -> list[Path]:
    return list(folder.glob("*.window"))
