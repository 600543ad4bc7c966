"""Where the ingest of a file runs, and what its end says about the file."""

import signal
from pathlib import Path

import orjson
import pytest

from gateway.batches import ingest_run
from gateway.batches.ingest import FAULT_EXIT, IngestRequest
from gateway.batches.ingest_run import BROKEN, run_ingest
from gateway.core.errors import HeadwayError
from tests.support.batch import chat_line


def _request(folder: Path, text: str) -> IngestRequest:
    source = folder / "input"
    source.write_bytes(orjson.dumps(chat_line("1", text)))
    return IngestRequest(str(source), str(folder), "/v1/chat/completions", ("m",))


@pytest.mark.parametrize("size", [1, 600_000])
async def test_small_and_large_files_give_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """A small one without a process of its own."""
    if size == 1:
        monkeypatch.setattr(ingest_run, "_CHILD", ("-c", "raise SystemExit(1)"))
    summary = await run_ingest(_request(tmp_path, "x" * size))
    assert (summary.rows, summary.segments[0].index) == (1, "index-0")
    assert (tmp_path / "index-0").stat().st_size == 24


@pytest.mark.parametrize(
    ("end", "code"),
    [
        ("os._exit(1)", None),
        (f"os._exit({FAULT_EXIT})", BROKEN),
        (f"os.kill(os.getpid(), {int(signal.SIGKILL)})", BROKEN),
        (f"os.kill(os.getpid(), {int(signal.SIGTERM)})", None),
    ],
)
async def test_how_a_child_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str, code: str | None
) -> None:
    """A start that failed and a stop are not held against the file."""
    monkeypatch.setattr(ingest_run, "_CHILD", ("-c", f"import os; {end}"))
    with pytest.raises(HeadwayError) as caught:
        await run_ingest(_request(tmp_path, "x" * 600_000))
    assert caught.value.code == code


@pytest.mark.parametrize("size", [1, 600_000])
async def test_a_disk_that_takes_no_index_is_not_the_files_fault(tmp_path: Path, size: int) -> None:
    """The index cannot be written: it is tried again later."""
    request = _request(tmp_path, "x" * size)
    (tmp_path / "index-0").mkdir()
    (tmp_path / "index-0" / "in the way").touch()
    with pytest.raises(HeadwayError) as caught:
        await run_ingest(request)
    assert caught.value.code is None
    assert [path.name for path in (tmp_path / "index-0").iterdir()] == ["in the way"]
