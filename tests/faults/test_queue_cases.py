"""Cases of queue and dispatch against real processes."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.support.answers import Pace
from tests.support.batch import BatchClient, chat_line, ids
from tests.support.scripts import error, hang_up, once
from tests.support.serve import (
    FAST,
    RunningHeadway,
    clean_environment,
    headway,
    headway_command,
    one_target,
    wait_for,
)
from tests.support.upstream import ScriptedUpstream


def second_dispatcher(running: RunningHeadway) -> subprocess.Popen[bytes]:
    """``headway dispatch`` beside the gateway's own, as an operator starts it."""
    policy = running.data_dir.parent / "policy.yaml"
    command = ["dispatch", "--data-dir", str(running.data_dir), "--policy", str(policy)]
    with running.log.open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "gateway", *command],
            env={**clean_environment(), **FAST, **running.env},
            stdout=log,
            stderr=log,
        )


@pytest.fixture
def slow(upstream: ScriptedUpstream) -> ScriptedUpstream:
    """UP with answers of about 0.1 s."""
    upstream.pace = Pace(first=0.06, token=0.01)
    return upstream


def test_que_01_one_of_four_dispatchers_is_killed(tmp_path: Path, slow: ScriptedUpstream) -> None:
    """It held rows and is not started again: the others have them within the lease and 10 s."""
    slow.pace = Pace(first=0.3)
    with headway(tmp_path, one_target(slow.url, window=12)) as running:
        others = [second_dispatcher(running) for _ in range(3)]
        try:
            for other in others:
                wait_for(partial(handles_sigterm, other.pid), 60, "a dispatcher")
            client = BatchClient(running)
            batch_id = client.start(chat_line(str(n), f"row {n}") for n in range(100))["id"]
            wait_for(lambda: client.done(batch_id) >= 20, 20)
            victim = wait_for(lambda: _holder(running, others), 10, "a dispatcher with rows")
            victim.kill()
            killed = time.monotonic()
            batch = client.ended(batch_id)
            assert time.monotonic() - killed < 12
            assert ids(client.output(batch)) == sorted(map(str, range(100)))
            again = Counter(call.text for call in slow.calls())
            assert len(again) == 100
            assert sum(again.values()) - 100 <= 64
        finally:
            for other in others:
                other.terminate()
                other.wait(10)


def test_que_01_bat_04_a_killed_dispatcher(tmp_path: Path, slow: ScriptedUpstream) -> None:
    """The rows it held are handed out again within the lease and 10 s; each comes once."""
    with headway(tmp_path, one_target(slow.url)) as running:
        client = BatchClient(running)
        batch_id = client.start(chat_line(str(n), f"row {n}") for n in range(64))["id"]
        wait_for(lambda: client.done(batch_id) >= 27, 20)
        os.kill(running.child("dispatch"), signal.SIGKILL)
        killed = time.monotonic()
        batch = client.ended(batch_id)
        assert time.monotonic() - killed < 12
        assert ids(client.output(batch)) == sorted(map(str, range(64)))


def test_que_02_a_row_longer_than_its_lease(tmp_path: Path, upstream: ScriptedUpstream) -> None:
    """Scaled to a fifth: a lease of 1 s is kept alive for a row of 4 s, which UP sees once."""
    upstream.pace = Pace(first=4.0)
    with headway(tmp_path, one_target(upstream.url), {"HEADWAY_LEASE_SECONDS": "1"}) as running:
        client = BatchClient(running)
        batch = client.ended(client.start([chat_line("1", "long")])["id"])
        assert batch["request_counts"] == {"completed": 1, "failed": 0, "total": 1}
        assert len(upstream.calls()) == 1


def test_que_05_backoff_is_kept(tmp_path: Path, upstream: ScriptedUpstream) -> None:
    """A row that always gets 429 waits longer each time and delays nobody."""
    upstream.on("limited", error(429, "slow down"))
    env = {"HEADWAY_RETRY_BASE_SECONDS": "0.2", "HEADWAY_RETRY_CAP_SECONDS": "3"}
    with headway(tmp_path, one_target(upstream.url), env) as running:
        client = BatchClient(running)
        lines = [chat_line("A", "limited"), *(chat_line(str(n), "fine") for n in range(100))]
        batch_id = client.start(lines)["id"]
        upstream.wait(upstream.calls, 10)
        started = time.monotonic()
        wait_for(lambda: client.done(batch_id) >= 100, 10)
        assert time.monotonic() - started < 5
        client.ended(batch_id)
        assert len(upstream.calls("limited")) <= 8


def test_rows_that_the_endpoint_refuses(tmp_path: Path, upstream: ScriptedUpstream) -> None:
    """They never go upstream and end with the answer that a call gets: 400 and its error."""
    odd: dict[str, dict[str, Any]] = {
        "above": {"max_tokens": 2**31},
        "below": {"max_tokens": -1},
        "tier": {"service_tier": "bogus"},
        "options": {"stream_options": {"include_usage": True}},
        "empty": {"messages": []},
    }
    with headway(tmp_path, one_target(upstream.url)) as running:
        client = BatchClient(running)
        lines = [chat_line(name, name, **members) for name, members in odd.items()]
        batch = client.ended(client.start([chat_line("good", "fine"), *lines])["id"])
        assert batch["status"] == "completed"
        assert batch["request_counts"] == {"completed": 1, "failed": 5, "total": 6}
        assert len(upstream.calls()) == 1
        told = {line["custom_id"]: line["response"] for line in client.errors(batch)}
        for line in lines:
            with running.client() as direct:
                refused = direct.post("/chat/completions", json=line["body"])
            response = told[line["custom_id"]]
            assert response["status_code"] == refused.status_code == 400
            assert response["body"] == refused.json()


def test_que_08_the_queue_server_restarts(tmp_path: Path, slow: ScriptedUpstream) -> None:
    """Killed half way, it comes back with what it had; no other process is started again."""
    with headway(tmp_path, one_target(slow.url)) as running:
        client = BatchClient(running)
        batch_id = client.start(chat_line(str(n), f"row {n}") for n in range(100))["id"]
        wait_for(lambda: client.done(batch_id) >= 50, 20)
        dispatcher = running.child("dispatch")
        os.kill(running.child("queue"), signal.SIGKILL)
        batch = client.ended(batch_id, 20)
        assert ids(client.output(batch)) == sorted(map(str, range(100)))
        assert running.child("dispatch") == dispatcher
        audit = headway_command(["queue", "audit", "--data-dir", str(running.data_dir)])
        assert audit.returncode == 0, audit.stdout


def test_que_17_places_refill_one_by_one(tmp_path: Path, upstream: ScriptedUpstream) -> None:
    """One long row among eight does not hold up the next twenty."""
    rest = threading.Event()
    upstream.on("long", once(rest.is_set, error(400, "end")))
    upstream.pace = Pace(first=0.1)
    with headway(tmp_path, one_target(upstream.url, window=8)) as running:
        client = BatchClient(running)
        lines = [chat_line("0", "long"), *(chat_line(str(n), "short") for n in range(1, 28))]
        batch_id = client.start(lines)["id"]
        wait_for(lambda: client.done(batch_id) >= 27, 20, "the others")
        rest.set()
        client.ended(batch_id)


def test_que_18_a_poison_row(tmp_path: Path, upstream: ScriptedUpstream) -> None:
    """A row that kills its server ends as max_deliveries; its 50 neighbours are answered."""

    def crash() -> None:
        time.sleep(0.6)  # sooner, a connection used before would count as closed while idle
        upstream.refuse()
        time.sleep(0.3)
        upstream.start()

    async def poison(exchange: object) -> None:
        threading.Thread(target=crash).start()
        await asyncio.Event().wait()

    upstream.pace = Pace(first=0.05)
    upstream.on("poison", poison)
    with headway(tmp_path, one_target(upstream.url, window=8)) as running:
        client = BatchClient(running)
        lines = [chat_line(str(n), "poison" if n == 7 else "fine") for n in range(51)]
        batch = client.ended(client.start(lines)["id"], 60)
        assert batch["request_counts"] == {"completed": 50, "failed": 1, "total": 51}
        [line] = client.errors(batch)
        assert line["custom_id"] == "7"
        assert line["error"]["code"] == "max_deliveries"
        assert len(upstream.calls("poison")) == 3


def test_a_lost_connection_is_no_crash(tmp_path: Path, upstream: ScriptedUpstream) -> None:
    """Rows whose connection alone is cut use up tries; the others are not held up."""
    upstream.pace = Pace(first=0.5)
    upstream.on("cut", hang_up(0.01))
    with headway(tmp_path, one_target(upstream.url, window=8)) as running:
        client = BatchClient(running)
        lines = [chat_line(str(n), "cut" if n == 0 else "fine") for n in range(16)]
        batch = client.ended(client.start(lines)["id"])
        assert batch["request_counts"] == {"completed": 15, "failed": 1, "total": 16}


def test_bat_26_two_dispatchers(tmp_path: Path, slow: ScriptedUpstream) -> None:
    """Both take part and UP sees each line once."""
    with headway(tmp_path, one_target(slow.url, window=4)) as running:
        second = second_dispatcher(running)
        try:
            wait_for(lambda: handles_sigterm(second.pid), 60, "a second dispatcher")
            client = BatchClient(running)
            batch = client.ended(
                client.start(chat_line(str(n), f"row {n}") for n in range(64))["id"]
            )
            assert batch["request_counts"]["completed"] == 64
            assert len(slow.calls()) == 64
        finally:
            second.terminate()
            assert second.wait(10) == 0


def test_dep_03_sigterm_during_a_batch(tmp_path: Path, slow: ScriptedUpstream) -> None:
    """One of two dispatchers is asked to end: it ends with 0 and the other finishes the batch."""
    with headway(tmp_path, one_target(slow.url, window=4)) as running:
        second = second_dispatcher(running)
        wait_for(lambda: handles_sigterm(second.pid), 60, "a second dispatcher")
        client = BatchClient(running)
        batch_id = client.start(chat_line(str(n), f"row {n}") for n in range(64))["id"]
        wait_for(lambda: client.done(batch_id) >= 20, 20)
        second.terminate()
        assert second.wait(10) == 0
        batch = client.ended(batch_id)
        assert batch["status"] == "completed"
        assert ids(client.output(batch)) == sorted(map(str, range(64)))


def test_bat_07_cancel_survives_a_restart(tmp_path: Path, upstream: ScriptedUpstream) -> None:
    """Cancel, kill -9 of everything 100 ms later, start: cancelled, and UP gets no more lines."""
    upstream.pace = Pace(first=20.0)
    with headway(tmp_path, one_target(upstream.url, window=4)) as running:
        client = BatchClient(running)
        batch_id = client.start(chat_line(str(n), f"row {n}") for n in range(20))["id"]
        upstream.wait(lambda: len(upstream.calls()) >= 4, 10)
        client.cancel(batch_id)
        time.sleep(0.1)
        running.kill()
        seen = len(upstream.calls())
        running.start_again()
        batch = client.ended(batch_id, 40)
        assert batch["status"] == "cancelled"
        assert len(upstream.calls()) == seen


def _holder(
    running: RunningHeadway, processes: list[subprocess.Popen[bytes]]
) -> subprocess.Popen[bytes] | None:
    """One of the processes that has rows leased."""
    endpoint = json.loads((running.data_dir / "queue" / "endpoint.json").read_text())
    with redis.Redis(unix_socket_path=endpoint["socket"], decode_responses=True) as client:
        leases = client.zrange("gw:{m.0}:exp", 0, -1)
        names = [str(client.hget(f"gw:{{m.0}}:l:{lease}", "worker")) for lease in leases]
    return next((p for p in processes if any(f"-{p.pid}-" in name for name in names)), None)


def handles_sigterm(pid: int) -> bool:
    """Whether the process has started so far that it ends in order when asked to."""
    status = Path(f"/proc/{pid}/status").read_text()
    caught = int(status.partition("SigCgt:")[2].split()[0], 16)
    return bool(caught >> (signal.SIGTERM - 1) & 1)
