"""The journal of a process."""

import asyncio
import fcntl
import os
import timeit
from pathlib import Path
from time import thread_time

import orjson
import pytest

from gateway.core.usage import MOST_TOKENS, Usage
from gateway.metering.journal import Journal
from gateway.metering.ledger import JournalLedger
from gateway.metering.record import CallRecord
from gateway.metering.recovery import journal_files, read_records
from tests.support.calls import an_intent, an_outcome


async def test_lines_reach_the_system_within_the_stated_time(tmp_path: Path) -> None:
    """Nothing is written on the path of a call; 50 ms later the system has it."""
    journal = Journal(tmp_path)
    before = journal.written
    journal.opened(an_intent())
    assert journal.written == before
    async with asyncio.timeout(5):
        while journal.written == before:  # noqa: ASYNC110 - a timer of its own
            await asyncio.sleep(0.01)
    assert journal.path.stat().st_size == journal.written
    assert b'"open":"req_1"' in journal.path.read_bytes()
    journal.close()


async def test_much_at_once_is_written_at_once(tmp_path: Path) -> None:
    """A hundred calls do not wait for the timer."""
    journal = Journal(tmp_path, flush_seconds=60)
    before = journal.written
    for number in range(400):
        journal.opened(an_intent(f"req_{number}"))
    assert journal.written > before
    journal.close()


async def test_sec_15_a_journal_has_no_content(tmp_path: Path) -> None:
    """A line has only the figures and names of the record; files are the owner's alone."""
    journal = Journal(tmp_path)
    JournalLedger(journal).open(an_intent()).close(an_outcome())
    journal.close()
    lines = [orjson.loads(line) for line in journal.path.read_bytes().splitlines()]
    assert set(lines[1]) == set(CallRecord(an_intent(), an_outcome()).to_json())
    assert not {"prompt_text", "messages", "content", "answer", "body"} & set(lines[1])
    assert lines[-1] == {"end": None}
    assert journal.path.stat().st_mode & 0o777 == 0o600


async def test_a_file_is_locked_while_it_is_written(tmp_path: Path) -> None:
    """Nobody takes a living process's file for one that was left."""
    journal = Journal(tmp_path)
    handle = os.open(journal.path, os.O_RDWR)
    with pytest.raises(BlockingIOError):
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    journal.close()
    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(handle)


async def test_full_files_are_followed_by_new_ones(tmp_path: Path) -> None:
    """No record is lost or doubled over files, and open calls are noted in each."""
    journal = Journal(tmp_path, rotate_bytes=2000)
    ledger = JournalLedger(journal)
    held = ledger.open(an_intent("req_long"))
    for number in range(20):
        ledger.open(an_intent(f"req_{number}")).close(an_outcome())
        journal.flush()
    assert b'"open":"req_long"' in journal.path.read_bytes()
    held.close(an_outcome(Usage(1, 1)))
    journal.close()
    files = journal_files(tmp_path)
    assert len(files) > 3
    assert all(b'{"end":' in file.read_bytes().splitlines()[-1] for file in files)
    ids = [record.intent.id for record in read_records(tmp_path)]
    assert sorted(ids) == sorted(["req_long", *(f"req_{number}" for number in range(20))])


async def test_a_full_disk_costs_no_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls go on; lines wait and are written when there is room, a half-written one too."""
    journal = Journal(tmp_path, flush_seconds=60)
    real_write = os.write
    room = [10]

    def write(handle: int, text: bytes) -> int:
        if not room[0]:
            raise OSError(28, "No space left on device")
        sent = real_write(handle, text[: room[0]])
        room[0] -= sent
        return sent

    monkeypatch.setattr(os, "write", write)
    JournalLedger(journal).open(an_intent()).close(an_outcome())
    journal.flush()
    room[0] = 10**9
    journal.close()
    assert [record.intent.id for record in read_records(tmp_path)] == ["req_1"]


async def test_a_call_costs_little(tmp_path: Path) -> None:
    """Intent and record together stay in the tens of microseconds, without a system call each."""
    ledger = JournalLedger(Journal(tmp_path))

    def call() -> None:
        ledger.open(an_intent()).close(an_outcome())

    costs = timeit.repeat(call, number=500, repeat=5, timer=thread_time)
    assert min(costs) / 500 < 150e-6


async def test_a_record_that_json_has_no_words_for_harms_nobody(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Figures beyond 64 bits and broken texts are written smaller; other records as they are."""
    journal = Journal(tmp_path, rotate_bytes=2000)
    ledger = JournalLedger(journal)
    held = ledger.open(an_intent("req_bad", max_completion=2**70, model="\ud800"))
    for number in range(400):
        ledger.open(an_intent(f"req_{number}")).close(an_outcome())
    held.close(an_outcome(Usage(2**64, 5)))
    journal.close()
    records = {record.intent.id: record for record in read_records(tmp_path)}
    assert len(records) == 401
    assert records["req_bad"].intent.max_completion == MOST_TOKENS
    assert records["req_bad"].outcome.usage == Usage(MOST_TOKENS, 5)
    assert len(journal_files(tmp_path)) > 2
    assert "made smaller" in caplog.text


async def test_a_record_that_has_no_line_at_all_is_counted_and_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The records before and after it are written; the call that made it never knows."""
    journal = Journal(tmp_path, flush_seconds=60)
    real = CallRecord.to_json

    def to_json(record: CallRecord) -> dict[str, object]:
        if record.intent.id == "req_bad":
            raise ValueError
        return real(record)

    monkeypatch.setattr(CallRecord, "to_json", to_json)
    for name in ("req_1", "req_bad", "req_2"):
        JournalLedger(journal).open(an_intent(name)).close(an_outcome())
    journal.flush()
    journal.close()
    assert [record.intent.id for record in read_records(tmp_path)] == ["req_1", "req_2"]
    assert "a record is lost, 1 so far" in caplog.text


async def test_a_disk_that_is_full_at_the_start_costs_no_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The process starts, says so in one sentence, and writes when there is room."""
    with monkeypatch.context() as full:
        full.setattr(os, "open", _no_room)
        journal = Journal(tmp_path / "journal")
        JournalLedger(journal).open(an_intent()).close(an_outcome())
        await asyncio.sleep(0.2)
        assert journal.written == 0
        assert not journal.path.exists()
    async with asyncio.timeout(2):
        while not list(read_records(tmp_path / "journal")):  # noqa: ASYNC110 - a timer of its own
            await asyncio.sleep(0.02)
    journal.close()
    assert [record.intent.id for record in read_records(tmp_path / "journal")] == ["req_1"]
    assert caplog.text.count("No space left on device") == 1
    assert "Traceback" not in caplog.text


async def test_a_folder_that_nobody_may_write_is_told_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That does not pass by itself: the process does not start."""
    monkeypatch.setattr(os, "open", _not_allowed)
    with pytest.raises(PermissionError):
        Journal(tmp_path)


def _no_room(*_: object) -> int:
    raise OSError(28, "No space left on device")


def _not_allowed(*_: object) -> int:
    raise PermissionError(13, "Permission denied")
