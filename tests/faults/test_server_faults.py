"""The queue's server is there and of no use: it cannot be reached, or its own disk is full."""

import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from gateway.store.binaries import find_server
from tests.chaos.proxy import FaultyProxy
from tests.faults.test_queue_cases import second_dispatcher
from tests.support.answers import Pace
from tests.support.batch import BatchClient, chat_line, ids, usage_of
from tests.support.serve import (
    RunningHeadway,
    clean_environment,
    headway,
    one_target,
    wait_for,
)
from tests.support.stubborn import bill, violations
from tests.support.upstream import ScriptedUpstream

_ROWS = 60
_ROOT = Path(__file__).parents[2]


def _lines(rows: int = _ROWS) -> list[dict[str, Any]]:
    return [chat_line(str(n), f"row {n}") for n in range(rows)]


def _whole(running: RunningHeadway, batch: dict[str, Any], rows: int = _ROWS) -> None:
    """Every row once, billed as delivered, and the queue agrees with itself."""
    output = BatchClient(running).output(batch)
    assert batch["status"] == "completed"
    assert ids(output) == sorted(map(str, range(rows)))
    wait_for(lambda: bill(running) == usage_of(output), 10, "the bill")
    assert not violations(running)


@pytest.mark.parametrize("fsync", ["everysec", pytest.param("always", marks=pytest.mark.long)])
def test_the_servers_disk_is_full(tmp_path: Path, upstream: ScriptedUpstream, fsync: str) -> None:
    """Its log cannot grow: nothing new is taken, what is answered is kept; then all goes on."""
    upstream.pace = Pace(first=0.1)
    server = tmp_path / "valkey-server"
    # without the trap it would be killed for a file over the limit, other than on a full disk
    server.write_text(f'#!/bin/sh\ntrap "" XFSZ\nexec {find_server()} "$@"\n')
    server.chmod(0o755)
    env = {"HEADWAY_SERVER_BIN": str(server), "HEADWAY_SERVER_FSYNC": fsync}
    with headway(tmp_path, one_target(upstream.url, window=4), env) as running:
        client = BatchClient(running)
        batch_id = client.start(_lines())["id"]
        wait_for(lambda: client.done(batch_id) >= 10, 20)
        gateway, queue = psutil.Process(running.pid), psutil.Process(running.child("queue"))
        free = queue.rlimit(psutil.RLIMIT_FSIZE)
        [log] = (running.data_dir / "queue").rglob("*.incr.aof")
        queue.rlimit(psutil.RLIMIT_FSIZE, (log.stat().st_size, free[1]))
        time.sleep(2.5)
        if fsync == "everysec":
            assert queue.is_running()
            wanted = {"input_file_id": client.upload(b"{}")["id"], "completion_window": "24h"}
            with running.client() as http:
                refused = http.post("/batches", json={**wanted, "endpoint": "/v1/chat/completions"})
            assert refused.status_code == 503
            assert refused.headers["retry-after"]
            assert client.done(batch_id) < _ROWS
            queue.rlimit(psutil.RLIMIT_FSIZE, free)
        else:
            wait_for(
                lambda: not queue.is_running(), 10, "its end: it may not go on without its log"
            )
        assert gateway.is_running()
        _whole(running, client.ended(batch_id, 60))


@pytest.fixture
def proxied(tmp_path: Path) -> Iterator[FaultyProxy]:
    """A queue server of the data directory's, and a proxy before it."""
    data_dir = tmp_path / "data"
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.chaos.queue_server", str(data_dir)],
        cwd=_ROOT,
        env={**clean_environment(), "PYTHONPATH": str(_ROOT)},
    )
    socket = data_dir / "queue" / "r.sock"
    wait_for((data_dir / "queue" / "endpoint.json").exists, 20, "the queue server")
    proxy = FaultyProxy(Path(tempfile.mkdtemp(prefix="hw")) / "p.sock", lambda: socket)
    proxy.start()
    yield proxy
    proxy.parted = False
    proxy.stop()
    proxy.path.unlink(missing_ok=True)
    process.terminate()
    process.wait(10)


@pytest.mark.parametrize(
    ("seconds", "cut"), [(4.0, False), pytest.param(9.0, True, marks=pytest.mark.long)]
)
def test_a_partition(
    tmp_path: Path, upstream: ScriptedUpstream, proxied: FaultyProxy, seconds: float, cut: bool
) -> None:
    """Gateway and dispatcher see no server for several leases; another dispatcher goes on.

    Both compute what the first held, and it is delivered and billed once.
    """
    upstream.pace = Pace(first=0.2)
    rows = 150
    env = {"HEADWAY_REDIS_URL": proxied.url, "HEADWAY_LEASE_SECONDS": "1"}
    with headway(tmp_path, one_target(upstream.url, window=4), env) as running:
        client = BatchClient(running)
        batch_id = client.start(_lines(rows))["id"]
        wait_for(lambda: client.done(batch_id) >= 10, 20)
        proxied.parted = True
        url = f"unix://{tmp_path}/data/queue/r.sock"
        direct = replace(running, env={**running.env, "HEADWAY_REDIS_URL": url})
        other = second_dispatcher(direct)
        try:
            parted = time.monotonic()
            upstream.wait(lambda: time.monotonic() - parted >= seconds, seconds + 5)
            with running.client() as http:
                chat = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
                assert http.post("/chat/completions", json=chat).status_code == 200
            proxied.parted = False
            if cut:
                assert proxied.cut()
            batch = client.ended(batch_id, 60)
            again = Counter(call.text for call in upstream.calls("row "))
            assert sum(again.values()) > len(again) == rows
            _whole(running, batch, rows)
        finally:
            other.terminate()
            assert other.wait(10) == 0
