"""No room: memory of the queue server, and the disk under the data directory."""

import contextlib
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import redis

from tests.support.answers import Pace
from tests.support.batch import BatchClient, chat_line, ids, usage_of
from tests.support.meter import delivered
from tests.support.serve import RunningHeadway, headway, one_target, wait_for
from tests.support.upstream import ScriptedUpstream

_ROWS = 60
_OVER = 2**20
_SMALL = {"HEADWAY_SERVER_MAXMEMORY": "12mb"}


def _lines(name: str, rows: int) -> list[dict[str, Any]]:
    return [chat_line(f"{name}-{n}", f"{name} row {n}") for n in range(rows)]


def _fill(running: RunningHeadway) -> "redis.Redis":
    """Write until the server takes nothing any more, and would not if a little were freed."""
    endpoint = json.loads((running.data_dir / "queue" / "endpoint.json").read_text())
    client = redis.Redis(unix_socket_path=endpoint["socket"])
    for size in (65_536, 1024, 16):
        with contextlib.suppress(redis.exceptions.OutOfMemoryError):
            for number in range(1_000_000):
                client.set(f"filler:{size}:{number}", b"x" * size)
    client.config_set("maxmemory", int(client.info("memory")["used_memory"]) - _OVER)
    return client


def test_the_queue_is_out_of_memory(tmp_path: Path, upstream: ScriptedUpstream) -> None:
    """New batches are refused in words; results, cancels and final files go on; then all does."""
    upstream.pace = Pace(first=0.3)
    with headway(tmp_path, one_target(upstream.url, window=4), _SMALL) as running:
        client = BatchClient(running)
        batch_id = client.start(_lines("a", _ROWS))["id"]
        other = client.start(_lines("b", _ROWS))["id"]
        wait_for(lambda: client.done(batch_id) + client.done(other) >= 8, 20)
        upstream.wait(lambda: upstream.running > 0, 5)
        filler = _fill(running)
        with running.client() as http:
            refused = http.post("/batches", json=_wanted(client))
        assert refused.status_code == 503
        assert refused.json()["error"]["code"] == "store_full"
        assert refused.headers["retry-after"]
        assert {batch["id"] for batch in _batches(running)} == {batch_id, other}
        upstream.wait(lambda: upstream.running == 0, 10)
        answered = len([call for call in upstream.calls() if call.completed])
        wait_for(lambda: client.done(batch_id) + client.done(other) == answered, 10, "commits")
        client.cancel(other)
        assert client.ended(other, 20)["status"] == "cancelled"
        _empty(filler)
        batch = client.ended(batch_id, 40)
        output = client.output(batch)
        assert ids(output) == sorted(line["custom_id"] for line in _lines("a", _ROWS))
        cancelled = client.output(client.get(other))
        both = usage_of(output + cancelled)
        assert delivered(running) == both


def _batches(running: RunningHeadway) -> list[dict[str, Any]]:
    """Those that the gateway lists, and those that it has on disk and might list later."""
    with running.client() as http:
        listed: list[dict[str, Any]] = http.get("/batches").json()["data"]
    return listed + [{"id": path.name} for path in (running.data_dir / "jobs").iterdir()]


def _wanted(client: BatchClient) -> dict[str, str]:
    data = "".join(json.dumps(line) + "\n" for line in _lines("c", 3)).encode()
    file_id = client.upload(data)["id"]
    return {
        "input_file_id": file_id,
        "endpoint": "/v1/chat/completions",
        "completion_window": "24h",
    }


def _empty(client: "redis.Redis") -> None:
    for key in client.scan_iter("filler:*", count=1000):
        client.unlink(key)
    client.close()


def test_the_disk_is_full(tmp_path: Path, upstream: ScriptedUpstream) -> None:
    """Uploads are refused in words, results wait for room; with room, each row is there once."""
    upstream.pace = Pace(first=0.1)
    with headway(tmp_path, one_target(upstream.url, window=8)) as running:
        client = BatchClient(running)
        batch_id = client.start(_lines("a", _ROWS))["id"]
        wait_for(lambda: client.done(batch_id) >= 10, 20)
        with _no_room(running):
            data = "".join(json.dumps(line) + "\n" for line in _lines("c", 30)).encode()
            refused = _upload(running, data)
            assert refused.status_code == 503
            assert refused.json()["error"]["code"] == "store_full"
            time.sleep(1.5)
            assert client.done(batch_id) < _ROWS
        batch = client.ended(batch_id, 40)
        output = client.output(batch)
        assert batch["status"] == "completed"
        assert ids(output) == sorted(line["custom_id"] for line in _lines("a", _ROWS))
        assert delivered(running) == usage_of(output)
        assert _upload(running, data).status_code == 200


def _upload(running: RunningHeadway, data: bytes) -> httpx.Response:
    form = {"file": ("input.jsonl", data, "application/jsonl")}
    with running.client() as http:
        return http.post("/files", files=form, data={"purpose": "batch"})


@contextlib.contextmanager
def _no_room(running: RunningHeadway) -> Iterator[None]:
    """No file of gateway and dispatcher can grow: as on a full disk, a write ends half way."""
    processes = [psutil.Process(pid) for pid in (running.pid, running.child("dispatch"))]
    before = [process.rlimit(psutil.RLIMIT_FSIZE) for process in processes]
    for process, (_, hard) in zip(processes, before, strict=True):
        process.rlimit(psutil.RLIMIT_FSIZE, (1000, hard))
    try:
        yield
    finally:
        for process, limits in zip(processes, before, strict=True):
            process.rlimit(psutil.RLIMIT_FSIZE, limits)
