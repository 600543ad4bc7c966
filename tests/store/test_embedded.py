"""The queue server that ``headway serve`` runs: one owner, nothing left behind, always back."""

import asyncio
import contextlib
import json
import os
import signal
import stat
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from gateway.core.errors import DataDirLocked, StartError, StoreUnavailable
from gateway.core.settings import Settings
from gateway.store.client import StoreClient, connect
from gateway.store.embedded import EmbeddedServer
from gateway.store.queue import QueueClient, RetryRule
from tests.support.batch_plane import eventually
from tests.support.segments import HOUR, SHARD, held, outcome, segment
from tests.support.valkey import server_in

_ROOT = Path(__file__).parents[2]
_OWNER = """
import sys, time
from pathlib import Path
from tests.support.valkey import server_in
server = server_in(Path(sys.argv[1]))
server.start()
print(server.pid, flush=True)
time.sleep(60)
"""


def _owner(directory: Path) -> subprocess.Popen[str]:
    """A process that starts the server of ``directory``, prints its pid and sleeps."""
    return subprocess.Popen(
        [sys.executable, "-c", _OWNER, str(directory)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=_ROOT,
    )


async def _ask(url: str, *command: str) -> object:
    client = connect(url)
    try:
        return await client.execute_command(*command)
    finally:
        await client.aclose()


async def test_it_runs_as_promised(tmp_path: Path) -> None:
    """Append-only file, no eviction, a memory limit, a private directory, no TCP port."""
    server = server_in(tmp_path)
    url = server.start()
    try:
        for name, value in {
            "appendonly": b"yes",
            "appendfsync": b"everysec",
            "maxmemory-policy": b"noeviction",
            "maxmemory": str(512 * 2**20).encode(),
            "port": b"0",
            "save": b"",
        }.items():
            assert await _ask(url, "CONFIG", "GET", name) == {name.encode(): value}
        assert stat.S_IMODE((tmp_path / "queue").stat().st_mode) == 0o700
        endpoint = json.loads((tmp_path / "queue" / "endpoint.json").read_text())
        assert endpoint == {
            "socket": str(tmp_path / "queue" / "r.sock"),
            "pid": server.pid,
            "owner": os.getpid(),
        }
    finally:
        server.stop()
    assert not (tmp_path / "queue" / "endpoint.json").exists()


async def test_what_was_written_is_there_after_a_restart(tmp_path: Path) -> None:
    """Stop and start again on one directory: the schedule goes on."""
    server = server_in(tmp_path)
    await _ask(server.start(), "SET", "k", "v")
    server.stop()
    assert await _ask(server.start(), "GET", "k") == b"v"
    server.stop()


def test_a_second_owner_is_refused_and_told_who_has_it(tmp_path: Path) -> None:
    """BAT-30's neighbour: two gateways never write one append-only file."""
    server = server_in(tmp_path)
    server.start()
    try:
        with pytest.raises(DataDirLocked) as refused:
            server_in(tmp_path).start()
        assert f"pid {os.getpid()}" in refused.value.message
        assert "HEADWAY_REDIS_URL=unix://" in refused.value.message
        assert refused.value.exit_code == 75
    finally:
        server.stop()


def test_nothing_outlives_a_killed_owner_and_its_successor_starts(tmp_path: Path) -> None:
    """SIGKILL of the gateway: its server ends by itself and frees the directory."""
    with _owner(tmp_path) as owner:
        assert owner.stdout is not None
        child = psutil.Process(int(owner.stdout.readline()))
        owner.kill()
        owner.wait(10)
    successor = server_in(tmp_path)
    successor.start()
    try:
        assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE
    finally:
        successor.stop()


def test_the_lock_lasts_as_long_as_the_server(tmp_path: Path) -> None:
    """A server whose owner forgot it still holds its directory: the lock is the server's own."""
    server = server_in(tmp_path)
    server.start()
    lock, server._lock = server._lock, -1
    os.close(lock)
    try:
        with pytest.raises(DataDirLocked):
            server_in(tmp_path).start()
    finally:
        server.stop()
    after = server_in(tmp_path)
    after.start()
    after.stop()


def test_a_deep_directory_gets_a_short_socket(tmp_path: Path) -> None:
    """Socket paths have a limit of about 100 bytes; data directories have none."""
    deep = tmp_path / ("d" * 60) / ("e" * 60)
    deep.mkdir(parents=True)
    server = server_in(deep)
    url = server.start()
    try:
        path = Path(url.removeprefix("unix://"))
        assert len(os.fsencode(path)) <= 100
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    finally:
        server.stop()


def test_a_relative_directory_is_where_the_command_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server works in a directory of its own; its files are in the one that was meant."""
    monkeypatch.chdir(tmp_path)
    server = server_in(Path("here"))
    server.start()
    server.stop()
    assert (tmp_path / "here" / "queue" / "server.log").exists()


def test_a_server_that_cannot_start_is_a_sentence(tmp_path: Path) -> None:
    """The log is named, and the directory is free again."""
    settings = Settings(data_dir=tmp_path, server_maxmemory="nonsense")
    server = EmbeddedServer(tmp_path, settings)
    with pytest.raises(StartError, match=r"server\.log"):
        server.start()
    fine = server_in(tmp_path)
    fine.start()
    fine.stop()


async def test_a_killed_server_comes_back_with_its_leases(tmp_path: Path) -> None:
    """SIGKILL under load, leases out: acknowledged commits stay, every row ends up done once."""
    server = server_in(tmp_path)
    client = connect(server.start())
    queue = QueueClient(client)
    watching = asyncio.create_task(server.watch())
    await queue.enqueue(SHARD, segment("a.0", 400))
    acknowledged: set[int] = set()
    kills = 0
    try:
        async with asyncio.timeout(30):
            while len(acknowledged) < 400:
                try:
                    kills += await _work(queue, server, acknowledged, kills)
                except StoreUnavailable:
                    await asyncio.sleep(0.02)
        view = await queue.segment(SHARD, "a.0")
        meter = await queue.meter(SHARD, "t", [HOUR])
    finally:
        watching.cancel()
        await client.aclose()
        server.stop()
    assert kills == 3
    assert view is not None
    assert (view.ok, view.status) == (400, "finalizing")
    assert meter["m"]["requests"] == 400
    assert meter["m"]["prompt"] == sum(row + 1 for row in range(400))


async def test_a_killed_server_comes_back_where_nothing_can_be_written(tmp_path: Path) -> None:
    """As on a full disk: the watch goes on, and the endpoint is told when there is room again."""
    server = server_in(tmp_path)
    client = connect(server.start())
    told = tmp_path / "queue" / "endpoint.json"
    before = _endpoint(told)
    told.with_name("endpoint.json.new").mkdir()
    watching = asyncio.create_task(server.watch())
    try:
        os.kill(before["pid"], signal.SIGKILL)
        await eventually(partial(_is_new, server, before["pid"]))
        await eventually(partial(_answers, client))
        assert _endpoint(told) == before
        told.with_name("endpoint.json.new").rmdir()
        await eventually(partial(_is_told, server, told))
        assert not watching.done()
    finally:
        watching.cancel()
        await client.aclose()
        server.stop()


async def _is_new(server: EmbeddedServer, killed: int) -> bool:
    return server.pid not in {None, killed}


async def _is_told(server: EmbeddedServer, endpoint: Path) -> bool:
    return bool(_endpoint(endpoint)["pid"] == server.pid)


def _endpoint(path: Path) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(path.read_text())
    return told


async def _answers(client: StoreClient) -> bool:
    with contextlib.suppress(StoreUnavailable):
        await client.execute_command("PING")
        return True
    return False


async def _work(
    queue: QueueClient, server: EmbeddedServer, acknowledged: set[int], kills: int
) -> bool:
    """Lease and commit once; kills the server in between at every hundredth row, three times."""
    await queue.reap(SHARD, 10, RetryRule(max_crashes=1000))
    lease = await queue.lease(SHARD, "w", 20, 10**9, 200)
    if lease is None:
        await asyncio.sleep(0.02)
        return False
    kill = kills < 3 and len(acknowledged) >= 100 * (kills + 1)
    if kill:
        assert server.pid is not None
        os.kill(server.pid, signal.SIGKILL)
    rows = [row for _, row in held(lease)]
    while not acknowledged.issuperset(rows):
        try:
            await queue.commit(SHARD, lease.id, "a.0", [outcome(row) for row in rows], HOUR)
            acknowledged.update(rows)
        except StoreUnavailable:
            await asyncio.sleep(0.02)
    return kill
