"""A real ``headway serve`` process, its children, and a client for its batches."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil
import yaml

KEY = "hw-test-key"
COMMAND = (sys.executable, "-m", "gateway")
_START_SECONDS = 60.0
_POLL = 0.05


@dataclass
class RunningHeadway:
    """A gateway under test. ``base_url`` ends in ``/v1``."""

    process: subprocess.Popen[bytes]
    data_dir: Path
    base_url: str
    key: str = KEY
    log: Path = Path()
    arguments: list[str] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def root(self) -> str:
        """The address without ``/v1``."""
        return self.base_url.removesuffix("/v1")

    def client(self) -> httpx.Client:
        """A client with the key, relative to ``/v1``."""
        headers = {"authorization": f"Bearer {self.key}"}
        return httpx.Client(base_url=self.base_url, headers=headers, timeout=30)

    def children(self) -> dict[str, int]:
        """Process ids of ``dispatch``, ``worker`` and ``queue``, those that run."""
        return {name: process.pid for name, process in _children(self.pid)}

    def child(self, name: str, timeout: float = 30.0) -> int:
        """The pid of a child, waited for."""
        return int(wait_for(lambda: self.children().get(name), timeout, name))

    def kill(self) -> None:
        """SIGKILL of the gateway itself; waits until its children are gone, too."""
        family = [process for _, process in _children(self.pid)]
        self.process.kill()
        self.process.wait()
        psutil.wait_procs(family, timeout=15)

    def stop(self, timeout: float = 20.0) -> int:
        """SIGTERM, and the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout)

    def start_again(self) -> None:
        """A new process with the same arguments; the base URL may change."""
        started = _start(self.arguments, self.env, self.data_dir, self.log)
        self.process, self.base_url = started.process, started.base_url

    def tail(self) -> str:
        """The end of the log."""
        return self.log.read_text(errors="replace")[-4000:]


def start_headway(
    tmp_path: Path,
    policy: Mapping[str, Any] | Path | None,
    env: Mapping[str, str] | None = None,
    arguments: Sequence[str] = (),
    command: Sequence[str] = COMMAND,
) -> RunningHeadway:
    """Start ``headway serve`` on a free port and wait until it answers.

    ``command`` is another installation's ``headway``.
    """
    data_dir = tmp_path / "data"
    argv = [*command, "serve", "--port", "0", "--data-dir", str(data_dir), *arguments]
    if policy is not None:
        argv += ["--policy", str(_policy_file(tmp_path, policy))]
    settings = {"HEADWAY_API_KEY": KEY, **FAST, **(env or {})}
    return _start(argv, settings, data_dir, tmp_path / "serve.log")


#: Short times, so that waits end within a test.
FAST = {
    "HEADWAY_LEASE_SECONDS": "2",
    "HEADWAY_REAP_INTERVAL_SECONDS": "0.2",
    "HEADWAY_RETRY_BASE_SECONDS": "0.05",
    "HEADWAY_RETRY_CAP_SECONDS": "0.4",
}


@contextlib.contextmanager
def headway(
    tmp_path: Path,
    policy: Mapping[str, Any] | Path | None,
    env: Mapping[str, str] | None = None,
    arguments: Sequence[str] = (),
    command: Sequence[str] = COMMAND,
) -> Iterator[RunningHeadway]:
    """``start_headway``, stopped at the end with exit code 0 and nothing left behind."""
    running = start_headway(tmp_path, policy, env, arguments, command)
    try:
        yield running
    except BaseException:
        sys.stderr.write(running.tail())
        running.kill()
        raise
    family = [process for _, process in _children(running.pid)]
    code = running.stop()
    _, alive = psutil.wait_procs(family, timeout=5)
    for process in alive:
        process.kill()
    assert not alive, alive
    assert code == 0, running.tail()


def one_target(url: str, window: int = 8, **members: Any) -> dict[str, Any]:
    """A policy with one target ``up`` that serves the model ``m``."""
    lanes = {"batch": {"max_in_flight": window}}
    return {"targets": {"up": {"base_url": url, "models": ["m"], "lanes": lanes, **members}}}


def headway_command(
    arguments: Sequence[str], env: Mapping[str, str] | None = None, timeout: float = 60.0
) -> subprocess.CompletedProcess[str]:
    """Run one command to its end."""
    return subprocess.run(
        [*COMMAND, *arguments],
        env={**clean_environment(), **(env or {})},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def client_command(running: RunningHeadway, *arguments: str) -> tuple[int, str, str]:
    """Exit code, output and errors of a command that talks to ``running``."""
    command = [*arguments, "--data-dir", str(running.data_dir)]
    ended = headway_command(command, {"HEADWAY_API_KEY": KEY})
    return ended.returncode, ended.stdout, ended.stderr


def wait_for(
    look: Callable[[], Any], timeout: float = 10.0, what: str = "it", poll: float = _POLL
) -> Any:
    """Poll until ``look()`` is true and return that."""
    end = time.monotonic() + timeout
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < end, f"{what} did not come in {timeout} s"
        time.sleep(poll)


def _start(arguments: list[str], env: dict[str, str], data_dir: Path, log: Path) -> RunningHeadway:
    (data_dir / "gateway.json").unlink(missing_ok=True)
    with log.open("ab") as sink:
        process = subprocess.Popen(
            arguments,
            env={**clean_environment(), **env},
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            start_new_session=True,
        )
    running = RunningHeadway(process, data_dir, "", KEY, log, arguments, env)
    try:
        running.base_url = wait_for(lambda: _answering(running), _START_SECONDS, "the gateway")
    except AssertionError:
        process.kill()
        raise AssertionError(running.tail()) from None
    return running


def _answering(running: RunningHeadway) -> str | None:
    assert running.process.poll() is None, running.tail()
    try:
        announced = json.loads((running.data_dir / "gateway.json").read_text())
        url = str(announced["base_url"])
        alive = httpx.get(url.removesuffix("/v1") + "/livez", timeout=5).is_success
    except (OSError, httpx.HTTPError):
        return None
    return url if alive else None


def _children(pid: int) -> list[tuple[str, psutil.Process]]:
    found = []
    with contextlib.suppress(psutil.Error):
        for process in psutil.Process(pid).children():
            with contextlib.suppress(psutil.Error):
                found.append((_role(process.cmdline()), process))
    return found


def _role(command: Sequence[str]) -> str:
    for role in ("dispatch", "worker"):
        if role in command:
            return role
    return "queue"


def _policy_file(tmp_path: Path, policy: Mapping[str, Any] | Path) -> Path:
    if isinstance(policy, Path):
        return policy
    path = tmp_path / "policy.yaml"
    path.write_text(yaml.safe_dump(dict(policy)))
    return path


def clean_environment() -> dict[str, str]:
    """This environment without settings of Headway that the developer may have."""
    return {
        name: value
        for name, value in os.environ.items()  # noqa: TID251 - the environment of a process under test
        if not name.startswith("HEADWAY_") and name != "REDIS_URL"
    }
