"""The child process that checks and indexes a file."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest

from gateway.batches.ingest import IngestRequest, Summary, ingest
from gateway.batches.ordering import ROW
from tests.support.batch import chat_line
from tests.support.contract import checked, sample

URL = "/v1/chat/completions"


def _ingest(folder: Path, content: bytes, endpoint: str = URL, **more: Any) -> Summary:
    source = folder / "input"
    source.write_bytes(content)
    given = {"models": ("m", "n"), **more}
    return ingest(IngestRequest(str(source), str(folder), endpoint, **given))


def _rows(folder: Path, name: str = "index-0") -> list[bytes]:
    source = (folder / "input").read_bytes()
    index = (folder / name).read_bytes()
    return [source[offset : offset + size] for offset, size, *_ in ROW.iter_unpack(index)]


def _file(*lines: dict[str, Any]) -> bytes:
    return b"".join(orjson.dumps(line) + b"\n" for line in lines)


@pytest.mark.parametrize(
    ("name", "endpoint", "rows"),
    [("s1_chat_plain", URL, 8), ("s2_tools_and_formats", URL, 5), ("s4_windows_unicode", URL, 3)],
)
def test_good_samples(tmp_path: Path, name: str, endpoint: str, rows: int) -> None:
    """BAT-22: BOM, CRLF, blank lines and odd separators: as many rows as JSON lines, unchanged."""
    content = sample(name, MODEL="m", MODEL_E="n")
    summary = _ingest(tmp_path, content, endpoint)
    assert (summary.rows, summary.errors) == (rows, ())
    wanted = [json.loads(line) for line in content.decode("utf-8-sig").split("\n") if line.strip()]
    found = [json.loads(row) for row in _rows(tmp_path)]
    key = json.dumps
    assert sorted(found, key=key) == sorted(wanted, key=key)


def test_embeddings_sample(tmp_path: Path) -> None:
    """The third sample is for the embeddings endpoint."""
    content = sample("s3_embeddings", MODEL_E="n")
    assert _ingest(tmp_path, content, "/v1/embeddings").rows == 3


def test_faulty_sample(tmp_path: Path) -> None:
    """BAT-10: every faulty line is named with its code; nothing is indexed."""
    summary = _ingest(tmp_path, sample("s5_faulty_lines", MODEL="m"))
    assert [(error["line"], error["code"]) for error in summary.errors] == [
        (2, "invalid_json_line"),
        (3, "duplicate_custom_id"),
        (4, "invalid_url"),
        (5, "missing_required_parameter"),
        (6, "streaming_unsupported"),
    ]
    for error in summary.errors:
        checked(error, "batch_error")
    assert summary.segments == ()
    assert not list(tmp_path.glob("index*"))


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\n\n\n", b""])
def test_line_ends(tmp_path: Path, end: bytes) -> None:
    """BAT-22: U+2028, U+2029, U+0085 and VT inside strings split nothing and stay."""
    text = "a\u2028b\u2029c\x85d"
    line = json.dumps(chat_line("x", text), ensure_ascii=False).encode()
    summary = _ingest(tmp_path, b"\xef\xbb\xbf" + line + end)
    assert summary.rows == 1
    assert _rows(tmp_path) == [line]


def test_line_numbers_count_blank_lines(tmp_path: Path) -> None:
    """A line number is that of the physical line."""
    summary = _ingest(tmp_path, b"\n \r\n" + _file(chat_line("a", "x")) + b"{\n")
    assert [error["line"] for error in summary.errors] == [4]


@pytest.mark.parametrize("content", [b"", b"\n\r\n", b"\xef\xbb\xbf"])
def test_no_requests(tmp_path: Path, content: bytes) -> None:
    """BAT-10: a file without requests fails with empty_file and no line."""
    (error,) = _ingest(tmp_path, content).errors
    assert (error["code"], error["line"]) == ("empty_file", None)


def test_one_segment_per_model(tmp_path: Path) -> None:
    """A mixed file is split; segments follow first use."""
    lines = [chat_line(str(n), "x", model="n" if n % 3 else "m") for n in range(9)]
    summary = _ingest(tmp_path, _file(*lines))
    assert [(s.model, s.rows, s.index) for s in summary.segments] == [
        ("m", 3, "index-0"),
        ("n", 6, "index-1"),
    ]
    assert {json.loads(row)["custom_id"] for row in _rows(tmp_path)} == {"0", "3", "6"}


def test_too_many_rows(tmp_path: Path) -> None:
    """The limit itself is fine, one more is too_many_tasks without a line."""
    lines = [chat_line(str(n), "x") for n in range(6)]
    assert not _ingest(tmp_path, _file(*lines), max_rows=6).errors
    (error,) = _ingest(tmp_path, _file(*lines), max_rows=5).errors
    assert (error["code"], error["line"]) == ("too_many_tasks", None)


def test_too_many_embedding_inputs(tmp_path: Path) -> None:
    """For embeddings the inputs of all lines count together."""
    line = {"custom_id": "a", "method": "POST", "url": "/v1/embeddings"}
    content = _file({**line, "body": {"model": "m", "input": ["x"] * 4}})
    (error,) = _ingest(tmp_path, content, "/v1/embeddings", max_rows=3).errors
    assert error["code"] == "too_many_tasks"


def test_at_most_100_errors(tmp_path: Path) -> None:
    """The rest is counted in the last entry."""
    errors = _ingest(tmp_path, b"{\n" * 250).errors
    assert len(errors) == 100
    assert errors[98]["line"] == 99
    assert errors[99]["line"] is None
    assert errors[99]["message"].startswith("151 more")
    assert len(_ingest(tmp_path, b"{\n" * 100).errors) == 100


def test_an_endless_line_is_a_fault_of_its_own(tmp_path: Path) -> None:
    """A line over 32 MiB is not read into memory; the next line is checked as usual."""
    content = b"x" * (32 * 2**20 + 5) + b"\n" + _file(chat_line("a", "x")) + b"{"
    errors = _ingest(tmp_path, content).errors
    assert [(e["line"], e["code"]) for e in errors] == [
        (1, "invalid_request"),
        (3, "invalid_json_line"),
    ]


async def test_the_child_process(tmp_path: Path) -> None:
    """Run as a command it reads a request and prints the summary; its memory stays small."""
    with (tmp_path / "input").open("wb") as file:
        for number in range(5000):
            file.write(orjson.dumps(chat_line(str(number), "y" * 4000)) + b"\n")
    request = IngestRequest(str(tmp_path / "input"), str(tmp_path), URL, ("m",))
    code = (
        "import gateway.batches.ingest as i, sys; i.main();"
        "print(open('/proc/self/status').read().split('VmHWM:')[1].split()[0], file=sys.stderr)"
    )
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        code,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    printed, peak = await child.communicate(request.to_json())
    assert Summary.from_json(printed).segments[0].rows == 5000
    assert int(peak) < 60_000  # kB; the file has 20 MB
