"""Killed while both lanes share an engine: a dispatcher, or one of two gateways.

In real time, against a simulated engine in a process of its own. ``span`` is how long is looked at
before and after.
"""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from tests.support.coserving import EngineProcess, Lanes, People, Rows, faults, gap, ttft
from tests.support.gateway import chat_body
from tests.support.machine import slowness
from tests.support.serve import COMMAND, RunningHeadway, clean_environment, headway, wait_for

_LONG = pytest.param(15.0, marks=pytest.mark.long)
_SLACK = 0.15
# Its lease, its call and its first step, on a machine that starts a gateway at that moment.
_START_OF_A_ROW = 1.0
_ENV = {"HEADWAY_RETRY_CAP_SECONDS": "60", "HEADWAY_LEASE_SECONDS": "1"}
_ROWS_A_SECOND = 20


def _policy(engine: EngineProcess) -> dict[str, Any]:
    return {"targets": {"engine": _target(engine, ["m"], {"auto": True, "max_in_flight": 16})}}


def _target(engine: EngineProcess, models: object, batch: object) -> dict[str, Any]:
    url = f"{engine.url}/v1"
    return {"kind": "vllm", "base_url": url, "models": models, "lanes": {"batch": batch}}


@pytest.fixture
def engine() -> Iterator[EngineProcess]:
    """A simulated A100."""
    with EngineProcess("--profile", "a100-8b") as process:
        yield process


def _beside(
    running: RunningHeadway, engine: EngineProcess, kill: Callable[[], object], span: float
) -> None:
    """People notice nothing of the kill; rows flow again, and each is delivered once."""
    with People(running) as people:
        rows = Rows(running, round(_ROWS_A_SECOND * (3 * span + 6))).start()
        lanes = Lanes(people, rows, span)
        before = lanes.look()
        at = time.monotonic()
        kill()
        lanes.settle(lambda seen: seen.rate >= 0.6 * before.rate, 20)
        since = people.since(at)
    engine.change(speed=8)
    rows.whole(120)
    assert not faults(people.talks)
    assert ttft(since) <= 1.2 * before.ttft + _SLACK * slowness()
    assert gap(since) <= 1.2 * before.gap + 0.005 * slowness()


@pytest.mark.parametrize("span", [_LONG])
def test_the_dispatcher_is_started_again(
    tmp_path: Path, engine: EngineProcess, span: float
) -> None:
    """By ``headway serve``; the new one finds the caps again."""
    with headway(tmp_path, _policy(engine), _ENV) as running:
        victim = running.child("dispatch")
        _beside(running, engine, lambda: os.kill(victim, signal.SIGKILL), span)
        assert running.child("dispatch") != victim


@contextmanager
def _dispatcher(running: RunningHeadway, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A ``headway dispatch`` beside."""
    argv = [*COMMAND, "dispatch", "--data-dir", str(running.data_dir)]
    argv += ["--policy", str(tmp_path / "policy.yaml")]
    with (tmp_path / "dispatch.log").open("ab") as log:
        process = subprocess.Popen(
            argv, env={**clean_environment(), **running.env}, stdout=log, stderr=log
        )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(10)


@pytest.mark.parametrize("span", [1.5, _LONG])
def test_the_other_dispatcher_takes_over(
    tmp_path: Path, engine: EngineProcess, span: float
) -> None:
    """Of two on one queue, that nobody starts again."""
    env = {**_ENV, "HEADWAY_DISPATCHERS": "0"}
    with headway(tmp_path, _policy(engine), env) as running, ExitStack() as beside:
        victim = beside.enter_context(_dispatcher(running, tmp_path))
        beside.enter_context(_dispatcher(running, tmp_path))
        _beside(running, engine, victim.kill, span)
        assert victim.wait(5) < 0


@dataclass
class _Stream:
    """A stream of minutes over a connection to one of the gateways, and when it spoke last."""

    running: RunningHeadway
    client: httpx.Client
    last: float = 0.0
    longest: float = 0.0
    broken: bool = False

    def begin(self, model: str) -> None:
        """Start it and wait for its first token."""
        self._model = model
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()
        wait_for(lambda: self.last, 10, "a first token")

    def end(self) -> None:
        """The caller leaves."""
        self.client.close()
        self._thread.join()

    def _read(self) -> None:
        body = chat_body("long", model=self._model, stream=True, max_tokens=8000)
        try:
            with self.client.stream("POST", "/chat/completions", json=body) as answer:
                for line in answer.iter_lines():
                    if '"content":"' in line.replace(" ", ""):
                        now = time.monotonic()
                        self.longest = max(self.longest, now - (self.last or now))
                        self.last = now
        except httpx.TransportError:
            pass
        self.broken = True


def _streams(running: RunningHeadway) -> dict[int, _Stream]:
    """One for each of two gateways, by process id; not begun."""
    found: dict[int, _Stream] = {}

    def look() -> bool:
        client = running.client()
        with client.stream("GET", "/models") as answer:
            answer.read()
            port = answer.extensions["network_stream"].get_extra_info("client_addr")[1]
            owner = next(p for p in _gateways(running) if _holds(p, port))
        if owner.pid in found:
            client.close()
        else:
            found[owner.pid] = _Stream(running, client)
        return len(found) == 2

    wait_for(look, 15, "both gateways")
    return found


def _gateways(running: RunningHeadway) -> list[psutil.Process]:
    children = psutil.Process(running.pid).children()
    return [process for process in children if "serve-one" in process.cmdline()]


def _holds(process: psutil.Process, port: int) -> bool:
    return any(c.raddr and c.raddr.port == port for c in process.net_connections("tcp"))


def test_the_calls_of_a_dead_gateway_count_no_more(tmp_path: Path, engine: EngineProcess) -> None:
    """Rows wait for a call at one of two gateways; it is killed, and within a second they run.

    Calls at the other one go on, and so do all that come after.
    """
    targets = {
        "gated": _target(engine, ["m"], {"when": "idle", "auto": True}),
        "side": _target(engine, {"other": "m"}, {"max_in_flight": 0}),
    }
    with headway(tmp_path, {"targets": targets}, _ENV, ["--workers", "2"]) as running:
        (victim, dying), (_, living) = _streams(running).items()
        living.begin("other")
        dying.begin("m")
        rows = Rows(running, 40).create()
        time.sleep(1.5)
        assert rows.done() == 0
        assert engine.state()["running"] == 2
        os.kill(victim, signal.SIGKILL)
        at = time.monotonic()
        wait_for(lambda: engine.state()["running"] == 1, 5, "the end of its call", poll=0.01)
        wait_for(lambda: engine.busy() > 1, 10, "a row", poll=0.01)
        assert time.monotonic() - at <= 1.0 + _START_OF_A_ROW * slowness()
        with People(running, model="other") as people:
            rows.whole(30)
        assert dying.broken
        assert not living.broken
        assert living.longest < 0.5 * slowness()
        assert len(people.talks) > 5
        assert not faults(people.talks)
        for stream in (dying, living):
            stream.end()
