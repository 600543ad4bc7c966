"""``headway batch`` against a running gateway."""

import json
from pathlib import Path

from tests.support.batch import chat_line, ids
from tests.support.serve import (
    RunningHeadway,
    client_command,
)


def _run(running: RunningHeadway, *arguments: str) -> tuple[int, str, str]:
    return client_command(running, "batch", *arguments)


def _input(tmp_path: Path, *texts: str) -> str:
    path = tmp_path / "in.jsonl"
    lines = (json.dumps(chat_line(str(n), text)) for n, text in enumerate(texts))
    path.write_text("".join(f"{line}\n" for line in lines))
    return str(path)


def test_submit_wait_and_output(running: RunningHeadway, tmp_path: Path) -> None:
    """One command from the input file to the output file."""
    output = tmp_path / "out.jsonl"
    code, printed, told = _run(
        running, "submit", _input(tmp_path, "a", "b", "bad"), "--wait", "--output", str(output)
    )
    assert code == 0, told
    assert printed.startswith("batch_")
    assert "2 completed, 1 failed, 3 in total" in told
    assert f"headway batch download {printed.strip()} --errors" in told
    assert f"headway batch retry-failed {printed.strip()}" in told
    assert ids(json.loads(line) for line in output.read_text().splitlines()) == ["0", "1"]


def test_an_output_that_cannot_be_written_is_refused_first(
    running: RunningHeadway, tmp_path: Path
) -> None:
    """No batch is started for it."""
    asked = ["submit", _input(tmp_path, "never"), "--wait", "--output"]
    for output in (tmp_path / "none" / "out.jsonl", tmp_path):
        code, printed, told = _run(running, *asked, str(output))
        assert (code, printed) == (78, "")
        assert f"{output}: cannot be written" in told


def test_the_other_commands(running: RunningHeadway, tmp_path: Path) -> None:
    """submit, status, list, download, cancel: each does its one thing."""
    batch_id = _run(running, "submit", _input(tmp_path, "a", "bad"))[1].strip()
    code, shown, _ = _run(running, "status", batch_id, "--wait")
    assert code == 0
    assert json.loads(shown)["status"] == "completed"
    assert batch_id in _run(running, "list")[1]
    errors = tmp_path / "errors.jsonl"
    assert _run(running, "download", batch_id, "--errors", "-o", str(errors))[0] == 0
    assert ids([json.loads(errors.read_text())]) == ["1"]
    code, _, told = _run(running, "cancel", batch_id)
    assert code == 1
    assert "cannot be cancelled" in told


def test_a_faulty_file_fails_with_its_lines(running: RunningHeadway, tmp_path: Path) -> None:
    """--wait tells the faults and exits 2."""
    path = tmp_path / "bad.jsonl"
    path.write_text("{broken\n")
    code, _, told = _run(running, "submit", str(path), "--wait")
    assert code == 2
    assert "line 1" in told
    path.write_text("\n")
    code, _, told = _run(running, "submit", str(path), "--wait")
    assert code == 2
    assert "The input file has no requests." in told
    assert "None" not in told


def test_results_are_printed_as_they_come(running: RunningHeadway, tmp_path: Path) -> None:
    """Good and bad lines, to the end; behind a cursor only the rest."""
    batch_id = _run(running, "submit", _input(tmp_path, "a", "b", "bad"))[1].strip()
    code, shown, told = _run(running, "results", batch_id)
    assert code == 0, told
    lines = [json.loads(line) for line in shown.splitlines()]
    assert ids(lines) == ["0", "1", "2"]
    after = lines[0]["headway_cursor"]
    rest = _run(running, "results", batch_id, "--no-follow", "--after", after)[1]
    assert ids(map(json.loads, rest.splitlines())) == ids(lines[1:])
