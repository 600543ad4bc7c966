"""``headway batch retry-failed`` against a running gateway."""

import json
from pathlib import Path

from tests.support.batch import chat_line, ids
from tests.support.serve import (
    RunningHeadway,
    client_command,
)


def _run(running: RunningHeadway, *arguments: str) -> tuple[int, str, str]:
    return client_command(running, "batch", *arguments)


def _done(running: RunningHeadway, tmp_path: Path, *texts: str) -> str:
    path = tmp_path / "in.jsonl"
    lines = (json.dumps(chat_line(str(n), text)) for n, text in enumerate(texts))
    path.write_text("".join(f"{line}\n" for line in lines))
    return _run(running, "submit", str(path), "--wait")[1].strip()


def test_the_failed_lines_run_again(running: RunningHeadway, tmp_path: Path) -> None:
    """A new batch of exactly those lines, with the same ids and bodies."""
    batch_id = _done(running, tmp_path, "a", "bad", "b", "bad too")
    code, printed, told = _run(running, "retry-failed", batch_id)
    assert code == 0, told
    assert "2 lines of" in told
    again = json.loads(_run(running, "status", printed.strip(), "--wait")[1])
    assert again["id"] != batch_id
    assert again["request_counts"] == {"total": 2, "completed": 0, "failed": 2}
    errors = tmp_path / "errors.jsonl"
    assert _run(running, "download", again["id"], "--errors", "-o", str(errors))[0] == 0
    assert ids(json.loads(line) for line in errors.read_text().splitlines()) == ["1", "3"]


def test_nothing_failed(running: RunningHeadway, tmp_path: Path) -> None:
    """A batch without an error file is told so."""
    code, _, told = _run(running, "retry-failed", _done(running, tmp_path, "a"))
    assert code == 1
    assert "has no error file" in told


def test_an_input_that_is_gone(running: RunningHeadway, tmp_path: Path) -> None:
    """The bodies are in the input file: when its owner deleted it, that is said."""
    batch_id = _done(running, tmp_path, "bad")
    batch = json.loads(_run(running, "status", batch_id)[1])
    with running.client() as client:
        assert client.delete(f"files/{batch['input_file_id']}").status_code == 200
    code, _, told = _run(running, "retry-failed", batch_id)
    assert code == 1
    assert f"the input {batch['input_file_id']}" in told
    assert "is gone" in told
