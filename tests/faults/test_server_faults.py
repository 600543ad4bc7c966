"""The queue's server is there and of no use: it cannot be reached, or its own disk is full."""

import contextlib
import json
import os
import shutil
import signal
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
from tests.faults.test_queue_cases import handles_sigterm, second_dispatcher
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
_SOCKETS = shutil.ignore_patterns("*.sock", "LOCK", "endpoint.json")
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


class _Proxied:
    """Queue servers that take each other's place behind a proxy."""

    def __init__(self, first: Path) -> None:
        self._processes: list[subprocess.Popen[bytes]] = []
        self._folder = first
        self.start(first)
        self.proxy = FaultyProxy(Path(tempfile.mkdtemp(prefix="hw")) / "p.sock", self.socket)
        self.proxy.start()

    def socket(self) -> Path:
        """Of the server that is meant now."""
        return self._folder / "queue" / "r.sock"

    def start(self, folder: Path) -> None:
        """Start a server on what is in a data directory; it is the one that is meant now."""
        endpoint = folder / "queue" / "endpoint.json"
        endpoint.unlink(missing_ok=True)
        argv = [sys.executable, "-m", "tests.chaos.queue_server", str(folder)]
        env = {**clean_environment(), "PYTHONPATH": str(_ROOT)}
        self._processes.append(subprocess.Popen(argv, cwd=_ROOT, env=env))
        wait_for(endpoint.exists, 20, "the queue server")
        self._folder = folder

    def kill(self) -> None:
        """SIGKILL of the server, and nobody starts it again."""
        server = json.loads((self._folder / "queue" / "endpoint.json").read_text())["pid"]
        self._processes[-1].kill()
        self._processes[-1].wait()
        with contextlib.suppress(ProcessLookupError):
            os.kill(server, signal.SIGKILL)

    def stop(self) -> None:
        """End all of it."""
        self.proxy.parted = False
        self.proxy.stop()
        self.proxy.path.unlink(missing_ok=True)
        for process in self._processes:
            process.terminate()
            process.wait(10)


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[_Proxied]:
    """The first one is that of the data directory."""
    servers = _Proxied(tmp_path / "data")
    yield servers
    servers.stop()


@pytest.mark.parametrize(
    ("seconds", "cut"), [(4.0, False), pytest.param(9.0, True, marks=pytest.mark.long)]
)
def test_a_partition(
    tmp_path: Path, upstream: ScriptedUpstream, servers: _Proxied, seconds: float, cut: bool
) -> None:
    """Gateway and dispatcher see no server for several leases; another dispatcher goes on.

    Both compute what the first held, and it is delivered and billed once.
    """
    upstream.pace = Pace(first=0.2)
    rows = 200
    env = {"HEADWAY_REDIS_URL": servers.proxy.url, "HEADWAY_LEASE_SECONDS": "1"}
    with headway(tmp_path, one_target(upstream.url, window=4), env) as running:
        url = f"unix://{tmp_path}/data/queue/r.sock"
        other = second_dispatcher(replace(running, env={**env, "HEADWAY_REDIS_URL": url}))
        try:
            wait_for(lambda: handles_sigterm(other.pid), 20, "a second dispatcher")
            client = BatchClient(running)
            batch_id = client.start(_lines(rows))["id"]
            wait_for(lambda: client.done(batch_id) >= 10, 20)
            servers.proxy.parted = True
            parted = time.monotonic()
            upstream.wait(lambda: time.monotonic() - parted >= seconds, seconds + 5)
            with running.client() as http:
                chat = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
                assert http.post("/chat/completions", json=chat).status_code == 200
            servers.proxy.parted = False
            if cut:
                assert servers.proxy.cut()
            batch = client.ended(batch_id, 60)
            again = Counter(call.text for call in upstream.calls("row "))
            assert sum(again.values()) > len(again) == rows
            _whole(running, batch, rows)
        finally:
            other.terminate()
            assert other.wait(10) == 0


def test_a_failover_to_a_replica_that_is_behind(
    tmp_path: Path, upstream: ScriptedUpstream, servers: _Proxied
) -> None:
    """What was acknowledged since the replica lost its link is gone there, and is on disk.

    Rows done since then are not run again; a batch made since then runs.
    """
    upstream.pace = Pace(first=0.1)
    rows = 100
    env = {"HEADWAY_REDIS_URL": servers.proxy.url, "HEADWAY_LEASE_SECONDS": "1"}
    with headway(tmp_path, one_target(upstream.url, window=4), env) as running:
        client = BatchClient(running)
        batch_id = client.start(_lines(rows))["id"]
        wait_for(lambda: client.done(batch_id) >= 20, 20)
        replica = tmp_path / "replica"
        shutil.copytree(running.data_dir / "queue", replica / "queue", ignore=_SOCKETS)
        wait_for(lambda: client.done(batch_id) >= 60, 20)
        second = client.start([chat_line("new", "new row")])["id"]
        servers.kill()
        servers.start(replica)
        batch, other = client.ended(batch_id, 60), client.ended(second, 60)
        output = [*client.output(batch), *client.output(other)]
        assert ids(output) == sorted(["new", *map(str, range(rows))])
        wait_for(lambda: bill(running) == usage_of(output), 10, "the bill")
        assert not violations(running)
        calls = Counter(call.text for call in upstream.calls())
        assert sum(calls.values()) - len(calls) <= 3 * 64
