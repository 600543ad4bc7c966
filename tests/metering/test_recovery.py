"""What a process leaves behind when it is killed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.core.usage import Usage
from gateway.metering.journal import Journal
from gateway.metering.ledger import JournalLedger
from gateway.metering.record import CallRecord, CallStatus
from gateway.metering.recovery import (
    complete,
    journal_files,
    keep,
    lines_from,
    read_records,
    sweep,
    take_back,
    taken,
)
from tests.support.calls import an_intent, an_outcome

_CALLER = """
import asyncio, sys
from pathlib import Path
from gateway.metering.journal import Journal
from gateway.metering.ledger import JournalLedger
from tests.support.calls import an_intent, an_outcome

async def main():
    journal = Journal(Path(sys.argv[1]))
    ledger = JournalLedger(journal)
    ledger.open(an_intent("req_done")).close(an_outcome())
    ledger.open(an_intent("req_open"))
    while b"req_open" not in journal.path.read_bytes():
        await asyncio.sleep(0.005)
    print("written", flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""


def killed_process(folder: Path) -> Path:
    """The journal of a process that got SIGKILL with one call done and one open."""
    process = subprocess.Popen([sys.executable, "-c", _CALLER, folder], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"written\n"
    (path,) = journal_files(folder)
    with taken(path) as ours:
        assert not ours
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    return path


def test_open_calls_of_a_killed_process_become_interrupted_ones(tmp_path: Path) -> None:
    """After kill -9 the record is an estimate with its bound; what was done stays as it was."""
    path = killed_process(tmp_path)
    with taken(path) as ours:
        assert ours
        size = complete(path)
        assert complete(path) == size
    done, left = list(read_records(tmp_path))
    assert done.intent.id == "req_done"
    assert done.bound is None
    assert left.intent.id == "req_open"
    assert left.outcome.status is CallStatus.INTERRUPTED
    assert left.outcome.usage == Usage(100, 0, estimated=True)
    assert left.bound == 64


async def test_a_call_without_a_limit_has_no_known_bound(tmp_path: Path) -> None:
    """A bound of zero would say that it cannot have cost anything; older files say that too."""
    journal = Journal(tmp_path)
    JournalLedger(journal).open(an_intent("req_a", max_completion=0))
    journal.close()
    complete(journal.path)
    (record,) = read_records(tmp_path)
    assert record.outcome.status is CallStatus.INTERRUPTED
    assert record.to_json()["bound"] is None
    assert CallRecord.from_json({**record.to_json(), "bound": 0}).bound is None


async def test_a_torn_line_is_skipped(tmp_path: Path) -> None:
    """Half a line at the end hides nothing before or after it."""
    journal = Journal(tmp_path)
    JournalLedger(journal).open(an_intent("req_a"))
    journal.close()
    with journal.path.open("ab") as file:
        file.write(b'{"close":"req_a","ten')
    complete(journal.path)
    (record,) = read_records(tmp_path)
    assert record.outcome.status is CallStatus.INTERRUPTED


async def test_calls_noted_again_in_the_next_file_are_not_closed_twice(tmp_path: Path) -> None:
    """A killed process's older file counts as ended when there is a next one."""
    journal = Journal(tmp_path, rotate_bytes=500)
    ledger = JournalLedger(journal)
    ledger.open(an_intent("req_long"))
    ledger.open(an_intent("req_x")).close(an_outcome())
    journal.flush()
    journal.close()
    first, second = journal_files(tmp_path)
    first.write_bytes(b"".join(first.read_bytes().splitlines(keepends=True)[:-1]))
    complete(first)
    complete(second)
    ids = [record.intent.id for record in read_records(tmp_path)]
    assert sorted(ids) == ["req_long", "req_x"]


async def test_stretches_end_with_a_line(tmp_path: Path) -> None:
    """Reading in small pieces gives each line once, with the offset of its end."""
    journal = Journal(tmp_path)
    for number in range(10):
        journal.opened(an_intent(f"req_{number}"))
    journal.close()
    offset, found = 0, 0
    while lines := lines_from(journal.path, offset, 100):
        offset = lines[-1][0]
        found += len(lines)
    assert offset == journal.path.stat().st_size
    assert found == 11


async def test_shipped_files_are_kept_for_their_days(tmp_path: Path) -> None:
    """They stay readable, then go."""
    journal = Journal(tmp_path)
    JournalLedger(journal).open(an_intent()).close(an_outcome())
    journal.close()
    keep(journal.path, "e")
    written = (tmp_path / "shipped" / "e" / journal.path.name).stat().st_mtime
    assert sweep(tmp_path, written + 86400, 2) == 0
    assert len(list(read_records(tmp_path))) == 1
    assert sweep(tmp_path, written + 3 * 86400, 2) == 1
    assert not list(read_records(tmp_path))


def test_a_file_that_is_gone_is_not_taken(tmp_path: Path) -> None:
    """Another process was quicker."""
    with taken(tmp_path / "gone.jsonl") as ours:
        assert not ours


@pytest.fixture(autouse=True)
def _in_the_source_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))


async def test_files_of_other_totals_are_taken_back(tmp_path: Path) -> None:
    """Those that the present totals have stay; twice is as good as once."""
    journals = [Journal(tmp_path), Journal(tmp_path)]
    for journal, epoch in zip(journals, ("old", "new"), strict=True):
        JournalLedger(journal).open(an_intent()).close(an_outcome())
        journal.close()
        keep(journal.path, epoch)
    assert journal_files(tmp_path) == []
    assert [take_back(tmp_path, "new") for _ in range(2)] == [1, 0]
    assert journal_files(tmp_path) == [journals[0].path]
    assert len(list(read_records(tmp_path))) == 2
