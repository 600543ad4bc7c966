"""Responses in the books: each once, whatever way it was made."""

import time
from pathlib import Path

import httpx
import orjson

from tests.support.responses import ResponsesPlane, responses_plane
from tests.support.scripts import Sse, chat_chunk
from tests.support.serve import wait_for


def _closed(plane: ResponsesPlane) -> list[tuple[str, str, str, int, int]]:
    lines = [
        orjson.loads(line)
        for file in (plane.running.data_dir / "journal").rglob("*")
        if file.is_file() and file.suffix != ".lock"
        for line in file.read_bytes().splitlines()
        if line.startswith(b"{")
    ]
    found = {line["close"]: line for line in lines if "close" in line}
    return sorted(
        (r["endpoint"], r["lane"], r["status"], r["prompt"], r["completion"])
        for r in found.values()
    )


def test_each_is_counted_once(tmp_path: Path) -> None:
    """At once, streamed, native, in the background, and one whose caller left."""
    with responses_plane(tmp_path) as plane:
        body = {"input": "a b", "max_output_tokens": 16}
        plane.text(model="m", **body)
        plane.text(model="m", stream=True, **body)
        plane.text(model="n", **body)
        plane.text(model="n", stream=True, **body)
        plane.text(model="m", background=True, **body)
        plane.upstream.on("hang", Sse([chat_chunk("x")] * 3, end="hang"))
        with plane.running.client() as http:
            leaving = {"model": "m", "input": "hang", "stream": True}
            with http.stream("POST", "/responses", json=leaving) as stream:
                for line in stream.iter_lines():
                    if "output_text.delta" in line:
                        break
                left = time.monotonic()
        plane.upstream.wait(lambda: plane.upstream.calls("hang")[0].peer_closed_at, 3)
        assert (plane.upstream.calls("hang")[0].peer_closed_at or 0) - left < 1
        wait_for(lambda: len(_closed(plane)) >= 6, 15, "the records")
        time.sleep(0.3)
        records = _closed(plane)
    path = "/v1/responses"
    assert records[0] == (path, "batch", "ok", 2, 16)
    assert [r[:3] for r in records[1:]] == [
        (path, "interactive", "cancelled"),
        *[(path, "interactive", "ok")] * 4,
    ]
    assert [r[3:] for r in records[2:]] == [(2, 16), (2, 16), (11, 4), (11, 4)]


def test_a_watched_response_and_the_end_of_the_process(tmp_path: Path) -> None:
    """A stream of a background response does not hold the process beyond its grace time."""
    with responses_plane(tmp_path, HEADWAY_GRACE_SECONDS="1") as plane:
        plane.upstream.on("hang", Sse([chat_chunk("x")], end="hang"))
        body = {"model": "m", "input": "hang", "background": True, "stream": True}
        with plane.running.client() as http, http.stream("POST", "/responses", json=body) as got:
            lines = got.iter_lines()
            assert next(lines) == "event: response.created"
            started = time.monotonic()
            assert plane.running.stop() == 0
            assert time.monotonic() - started < 10
            try:
                rest = list(lines)
            except httpx.HTTPError:
                rest = []
    assert "event: response.completed" not in rest
