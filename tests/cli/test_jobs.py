"""``headway jobs`` against a running gateway."""

import json
import subprocess
from pathlib import Path

from tests.support.gateway import chat_body
from tests.support.serve import (
    COMMAND,
    KEY,
    RunningHeadway,
    clean_environment,
    client_command,
)


def _run(running: RunningHeadway, *arguments: str) -> tuple[int, str, str]:
    return client_command(running, "jobs", *arguments)


def _call(tmp_path: Path, text: str) -> str:
    path = tmp_path / "call.json"
    path.write_text(json.dumps(chat_body(text)))
    return str(path)


def test_submit_and_wait(running: RunningHeadway, tmp_path: Path) -> None:
    """The result on standard output and the id beside it."""
    options = ("--deadline", "2h", "--priority", "5", "--key", "k")
    code, printed, told = _run(running, "submit", _call(tmp_path, "a"), *options, "--wait")
    assert code == 0, told
    assert json.loads(printed)["object"] == "chat.completion"
    assert told.startswith("job_")


def test_a_failed_job(running: RunningHeadway, tmp_path: Path) -> None:
    """Exit 2, and why."""
    code, _, told = _run(running, "submit", _call(tmp_path, "bad"), "--wait")
    assert code == 2
    assert "failed: no" in told


def test_the_other_commands(running: RunningHeadway, tmp_path: Path) -> None:
    """submit, status, result, list, cancel: each does its one thing."""
    job_id = _run(running, "submit", _call(tmp_path, "a"))[1].strip()
    code, shown, _ = _run(running, "status", job_id, "--wait")
    assert code == 0
    assert json.loads(shown)["status"] == "completed"
    assert json.loads(_run(running, "result", job_id)[1])["object"] == "chat.completion"
    assert job_id in _run(running, "list")[1]
    code, _, told = _run(running, "cancel", job_id)
    assert code == 1
    assert "cannot be cancelled" in told
    later = _run(running, "submit", _call(tmp_path, "a"), "--not-before", "1h")[1].strip()
    assert _run(running, "cancel", later)[1].strip() == "cancelled"


def test_standard_input(running: RunningHeadway) -> None:
    """A call of another endpoint from a pipe."""
    command = [*COMMAND, "jobs", "submit", "-", "--endpoint", "/v1/embeddings", "--wait"]
    ended = subprocess.run(
        [*command, "--data-dir", str(running.data_dir)],
        input='{"model": "m", "input": "x"}',
        env={**clean_environment(), "HEADWAY_API_KEY": KEY},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["data"][0]["object"] == "embedding"


def test_what_is_no_call(running: RunningHeadway, tmp_path: Path) -> None:
    """A missing file and a file that is no object are told before anything is sent."""
    path = tmp_path / "list.json"
    path.write_text("[]")
    assert _run(running, "submit", str(path))[0] == 2
    assert _run(running, "submit", str(tmp_path / "none.json"))[0] == 2
