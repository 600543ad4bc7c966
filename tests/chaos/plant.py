"""The parts of a round as child processes, and who of them has work in hand."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import httpx
import psutil
import redis

from gateway.core.launch import launch_argv
from tests.chaos.plan import LEASE_SECONDS, MODELS, TENANTS, RoundPlan
from tests.chaos.proxy import FaultyProxy
from tests.support.ports import free_port
from tests.support.serve import (
    COMMAND,
    clean_environment,
    headway_command,
    start_headway,
    wait_for,
)

_ROOT = Path(__file__).parents[2]
_ENV = {
    "HEADWAY_LEASE_SECONDS": str(LEASE_SECONDS),
    "HEADWAY_REAP_INTERVAL_SECONDS": "0.2",
    "HEADWAY_RETRY_BASE_SECONDS": "0.05",
    # also the patience with a model server that refuses connections while it starts again
    "HEADWAY_RETRY_CAP_SECONDS": "10",
}
_WINDOW = 8
_READY_SECONDS = 20.0
_BILL_SECONDS = 60.0


def key_of(tenant: str) -> str:
    """A tenant's API key."""
    return f"hw-chaos-key-of-{tenant}"


class Plant:
    """Model server, queue server, gateway with its dispatcher, and a second dispatcher."""

    def __init__(self, plan: RoundPlan, folder: Path) -> None:
        self.folder = folder
        self.data_dir = folder / "data"
        self.log = folder / "upstream.jsonl"
        self._env = {**_ENV, **plan.env}
        self._pace = plan.pace
        self._port = free_port()
        self._upstream = self._start_upstream()
        self._http = httpx.Client(base_url=f"http://127.0.0.1:{self._port}", timeout=2)
        self._queue: subprocess.Popen[bytes] | None = None
        self.proxy: FaultyProxy | None = None
        if plan.proxied:
            self._start_proxied_queue()
        self.gateway = start_headway(folder, self._policy(), self._env)
        self._dispatcher = self._start_dispatcher()

    def _policy(self) -> dict[str, Any]:
        lanes = {"batch": {"max_in_flight": _WINDOW}}
        url = f"http://127.0.0.1:{self._port}/v1"
        return {
            "targets": {"up": {"base_url": url, "models": list(MODELS), "lanes": lanes}},
            "keys": {name: {"tenant": name, "key": key_of(name)} for name in TENANTS},
        }

    # what is at work

    def leases(self) -> dict[int, int]:
        """Rows that dispatchers hold, by process id; empty while the queue server is away."""
        held: dict[int, int] = {}
        with contextlib.suppress(redis.RedisError, OSError, TypeError):
            client = self._redis()
            for shard in client.smembers("gw:{sys}:shards"):
                prefix = f"gw:{{{shard.decode()}}}:"
                for lease in client.zrange(prefix + "exp", 0, -1):
                    worker, left = client.hmget(f"{prefix}l:{lease.decode()}", "worker", "left")
                    if worker is None:
                        continue  # it has just ended
                    pid = int(worker.decode().rsplit("-", 2)[1])
                    held[pid] = held.get(pid, 0) + int(left)
            client.close()
        return held

    def answering(self) -> int:
        """Rows in flight at the model server."""
        with contextlib.suppress(httpx.HTTPError):
            return int(self._http.get("/metrics").text.split()[-1])
        return 0

    def dispatchers(self) -> list[int]:
        """Process ids of the gateway's dispatcher and the one beside it."""
        own = self.gateway.children().get("dispatch")
        return [pid for pid in (own, self._dispatcher.pid) if pid is not None]

    def server(self) -> int | None:
        """Process id of the queue server."""
        pid = self._endpoint().get("pid")
        return int(pid) if pid is not None and psutil.pid_exists(int(pid)) else None

    @property
    def upstream(self) -> int:
        """Process id of the model server."""
        return self._upstream.pid

    # what is done to it

    def kill_dispatcher(self, pid: int) -> None:
        """SIGKILL; the gateway starts its own again, the other is started here."""
        os.kill(pid, signal.SIGKILL)
        if pid == self._dispatcher.pid:
            self._dispatcher.wait()
            self._dispatcher = self._start_dispatcher()

    def kill_upstream(self) -> None:
        """SIGKILL, and a new one on the same port."""
        self._upstream.kill()
        self._upstream.wait()
        self._upstream = self._start_upstream()

    def kill_server(self, pid: int) -> None:
        """SIGKILL; its supervisor starts it again."""
        os.kill(pid, signal.SIGKILL)

    def kill_gateway(self) -> None:
        """SIGKILL; its children follow, and all of it is started again."""
        self.gateway.kill()
        self.gateway.start_again()

    def usage(self) -> dict[str, Any]:
        """``headway usage --json``, once the queue server answers."""
        asked = ["usage", "--json", "--data-dir", str(self.data_dir)]

        def look() -> dict[str, Any] | None:
            answer = headway_command(asked, timeout=_BILL_SECONDS)
            return json.loads(answer.stdout) if answer.returncode == 0 else None

        found: dict[str, Any] = wait_for(look, _BILL_SECONDS, "the bill")
        return found

    def stop(self) -> None:
        """End everything, gently where that works."""
        for process in (self._dispatcher, self._upstream):
            process.terminate()
        self.gateway.stop(30)
        for process in (self._dispatcher, self._upstream):
            _end(process)
        if self._queue is not None:
            _end(self._queue)
        if self.proxy is not None:
            self.proxy.stop()
        self._http.close()

    def kill(self) -> None:
        """End everything at once."""
        for process in (self._dispatcher, self._upstream):
            process.kill()
            process.wait()
        self.gateway.kill()
        if self._queue is not None:
            _end(self._queue)
        self._http.close()

    def _start_upstream(self) -> subprocess.Popen[bytes]:
        arguments = ["--port", str(self._port), "--log", str(self.log), "--pace", str(self._pace)]
        return self._start([sys.executable, "-m", "tests.chaos.upstream", *arguments])

    def _start_proxied_queue(self) -> None:
        self._queue = self._start(
            [sys.executable, "-m", "tests.chaos.queue_server", str(self.data_dir)]
        )
        wait_for(self._answers, _READY_SECONDS, "the queue server")
        self.proxy = FaultyProxy(Path(tempfile.mkdtemp(prefix="hw")) / "p.sock", self._socket)
        self.proxy.start()
        self._env["HEADWAY_REDIS_URL"] = self.proxy.url

    def _start_dispatcher(self) -> subprocess.Popen[bytes]:
        policy = str(self.folder / "policy.yaml")
        arguments = ["dispatch", "--data-dir", str(self.data_dir), "--policy", policy]
        return self._start([*COMMAND, *arguments])

    def _start(self, argv: list[str]) -> subprocess.Popen[bytes]:
        with (self.folder / "parts.log").open("ab") as log:
            return subprocess.Popen(
                launch_argv(argv, signal.SIGKILL),
                cwd=_ROOT,
                env={**clean_environment(), **self._env, "PYTHONPATH": str(_ROOT)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def _endpoint(self) -> dict[str, Any]:
        try:
            text = (self.data_dir / "queue" / "endpoint.json").read_text()
        except OSError:
            return {}
        found: dict[str, Any] = json.loads(text)
        return found

    def _socket(self) -> Path | None:
        socket = self._endpoint().get("socket")
        return Path(socket) if socket is not None else None

    def _redis(self) -> Any:
        return redis.Redis(unix_socket_path=str(self._socket()), socket_timeout=2)

    def _answers(self) -> bool:
        with contextlib.suppress(redis.RedisError, OSError):
            return bool(self._socket() and self._redis().ping())
        return False


def _end(process: subprocess.Popen[bytes]) -> None:
    """SIGTERM, then SIGKILL."""
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
