"""The command line's client."""

import json
from pathlib import Path

import pytest

from gateway.core.errors import ClientError, HeadwayError, Unavailable
from gateway.providers.api_client import ApiClient
from tests.support.scripts import answer, error
from tests.support.upstream import ScriptedUpstream


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
