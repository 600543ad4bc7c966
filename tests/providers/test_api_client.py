"""The command line's client."""

import contextlib
import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.core.errors import ClientError, HeadwayError, Unavailable
from gateway.providers.api_client import ApiClient
from tests.support.scripts import answer, error
from tests.support.upstream import ScriptedUpstream


@contextlib.contextmanager
def served_bytes(content: bytes) -> Iterator[str]:
    """A base URL where every GET is answered with ``content``."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *args: object) -> None:
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    server.server_close()
    thread.join()


def test_an_upload_tells_how_far_it_is(upstream: ScriptedUpstream, tmp_path: Path) -> None:
    """The whole file goes out as multipart, and the last report is its size."""
    upstream.enqueue(answer({"id": "file-1"}))
    path = tmp_path / "in.jsonl"
    path.write_bytes(b"x" * 300_000)
    sent: list[int] = []
    with ApiClient(upstream.url, "hw-k") as client:
        assert client.upload(path, sent.append)["id"] == "file-1"
    [call] = upstream.calls()
    assert sent[-1] == 300_000
    assert b'name="purpose"' in call.body
    assert call.headers["authorization"] == "Bearer hw-k"


def test_errors_carry_the_servers_message(upstream: ScriptedUpstream) -> None:
    """4xx is the caller's, 5xx is not; HTML is no message."""
    upstream.enqueue(error(404, "no such batch", code="nope"), error(500, "broken"))
    with ApiClient(upstream.url, "hw-k") as client:
        with pytest.raises(ClientError, match="no such batch"):
            client.cancel("batch_1")
        with pytest.raises(HeadwayError, match="broken"):
            client.cancel("batch_1")


def test_nobody_there_is_told(upstream: ScriptedUpstream) -> None:
    """The message says what to start."""
    url = upstream.url
    upstream.stop()
    with ApiClient(url, "hw-k") as client, pytest.raises(Unavailable, match="headway serve"):
        client.batch("batch_1")


def test_results_are_lines() -> None:
    """Split at LF alone, without the empty ones and without a half one."""
    content = b'{"a": "\xe2\x80\xa8"}\n\n{"b": 1}\n{"half'
    with served_bytes(content) as base, ApiClient(base, "hw-k") as client:
        found = list(client.results("batch_1", "AQ", follow=True))
    assert found == ['{"a": "\u2028"}', '{"b": 1}']


def test_a_503_is_a_gateway_that_is_away(upstream: ScriptedUpstream) -> None:
    """It may be asked again."""
    upstream.enqueue(error(503, "later"))
    with ApiClient(upstream.url, "hw-k") as client, pytest.raises(Unavailable, match="later"):
        client.cancel("batch_1")


def test_a_batch_is_created_as_asked(upstream: ScriptedUpstream) -> None:
    """File, endpoint and window."""
    upstream.enqueue(answer({"id": "batch_1"}))
    with ApiClient(upstream.url, "hw-k") as client:
        client.create_batch("file-1", "/v1/embeddings", "24h")
    assert json.loads(upstream.calls()[0].body) == {
        "input_file_id": "file-1",
        "endpoint": "/v1/embeddings",
        "completion_window": "24h",
    }


def test_a_job_is_created_as_asked(upstream: ScriptedUpstream) -> None:
    """Options that are not given are left out; the key is a header."""
    upstream.enqueue(answer({"id": "job_1"}))
    with ApiClient(upstream.url, "hw-k") as client:
        client.create_job("/v1/embeddings", {"model": "m"}, "k1", deadline="2h", priority=None)
    [call] = upstream.calls()
    assert json.loads(call.body) == {
        "endpoint": "/v1/embeddings",
        "body": {"model": "m"},
        "deadline": "2h",
    }
    assert call.headers["idempotency-key"] == "k1"
