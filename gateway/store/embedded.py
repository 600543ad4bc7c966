"""The queue server that ``headway serve`` runs when it is given none.

One directory, one server: an flock on ``LOCK`` is inherited by the server process itself, so it
lasts exactly as long as the server. The server ends when its starter dies.
"""

import asyncio
import fcntl
import hashlib
import json
import logging
import os
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from gateway.core.errors import DataDirLocked, StartError
from gateway.core.launch import launch_argv
from gateway.core.settings import Settings, child_environment
from gateway.store.binaries import find_server

_LONGEST_SOCKET_PATH = 100
_PREDECESSOR_SECONDS = 10.0
_READY_SECONDS = 60.0
_STOP_SECONDS = 10.0
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 5.0
_SETTLED_AFTER = 10.0

log = logging.getLogger(__name__)


class EmbeddedServer:
    """A supervised server on a unix socket, append-only file, never evicting."""

    def __init__(self, data_dir: Path, settings: Settings) -> None:
        self._dir = data_dir.absolute() / "queue"  # the server changes its directory
        self._settings = settings
        self._socket = _socket_path(self._dir)
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = -1
        self._binary: Path | None = None

    @property
    def url(self) -> str:
        """Where clients connect."""
        return f"unix://{self._socket}"

    @property
    def pid(self) -> int | None:
        """Process id while it runs."""
        return self._process.pid if self._process is not None else None

    def start(self) -> str:
        """Start the server and wait until it answers; returns its URL.

        To be called from the main thread. Raises ServerBinaryMissing, DataDirLocked when another
        process owns the directory, StartError when the server does not come up.
        """
        self._binary = find_server(self._settings.server_bin)
        self._dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._socket.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._lock = self._take_lock()
        try:
            self._spawn()
            self._wait_until_ready()
        except BaseException:
            self.stop()
            raise
        self._write_endpoint()
        return self.url

    def check_free(self) -> None:
        """Raise DataDirLocked when another living process owns the directory."""
        owner = self._living_owner()
        if owner is not None:
            raise DataDirLocked(self._locked_message(owner))

    async def watch(self) -> None:
        """Start the server again whenever it ends, until cancelled.

        From the main thread. Pauses 0.1 s, doubling to 5 s while it keeps ending or cannot be
        started, as on a full disk: calls go on meanwhile.
        """
        pause, started, announced = _FIRST_PAUSE, time.monotonic(), True
        while True:
            await asyncio.sleep(0.05)
            if self._process is None:
                continue
            if self._process.poll() is None:
                announced = announced or self._announced()
                continue
            if time.monotonic() - started >= _SETTLED_AFTER:
                pause = _FIRST_PAUSE
            log.warning("the queue server ended with %s; starting again", self._process.returncode)
            await asyncio.sleep(pause)
            pause, started, announced = min(2 * pause, _LONGEST_PAUSE), time.monotonic(), False
            try:
                self._spawn()
            except OSError as error:
                log.warning("the queue server cannot be started now: %s", error.strerror)

    def stop(self) -> None:
        """SIGTERM, SIGKILL after 10 s; gives up the directory."""
        process, self._process = self._process, None
        if process is not None and process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if self._lock >= 0:
            (self._dir / "endpoint.json").unlink(missing_ok=True)
            os.close(self._lock)
            self._lock = -1

    def _take_lock(self) -> int:
        """The descriptor of the locked LOCK file; waits for a predecessor that is ending."""
        descriptor = os.open(self._dir / "LOCK", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        deadline = time.monotonic() + _PREDECESSOR_SECONDS
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                owner = self._living_owner()
                if owner is not None or time.monotonic() >= deadline:
                    os.close(descriptor)
                    raise DataDirLocked(self._locked_message(owner)) from None
                time.sleep(0.05)
            else:
                return descriptor

    def _living_owner(self) -> int | None:
        """Process id of the living owner of the directory, if its server answers."""
        try:
            endpoint = json.loads((self._dir / "endpoint.json").read_text())
            owner = int(endpoint["owner"])
            os.kill(owner, 0)
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return owner if _ping(Path(str(endpoint["socket"]))) == b"+PONG\r\n" else None

    def _locked_message(self, owner: int | None) -> str:
        who = f"another headway (pid {owner})" if owner is not None else "another process"
        return (
            f"{who} owns the data directory {self._dir.parent}; use another --data-dir, or set "
            f"HEADWAY_REDIS_URL={self.url} to share its queue"
        )

    def _spawn(self) -> None:
        self._socket.unlink(missing_ok=True)
        options = {
            "port": "0",
            "unixsocket": str(self._socket),
            "unixsocketperm": "600",
            "dir": str(self._dir),
            "appendonly": "yes",
            "appendfsync": self._settings.server_fsync,
            "aof-load-truncated": "yes",
            "save": "",
            "maxmemory": self._settings.server_maxmemory,
            "maxmemory-policy": "noeviction",
            "daemonize": "no",
            "logfile": str(self._dir / "server.log"),
        }
        argv = [str(self._binary)]
        for name, value in options.items():
            argv += [f"--{name}", value]
        self._process = subprocess.Popen(  # noqa: S603 - the server we found
            launch_argv(argv),
            env=child_environment({}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=(self._lock,),
            start_new_session=True,
        )

    def _wait_until_ready(self) -> None:
        assert self._process is not None
        deadline = time.monotonic() + _READY_SECONDS
        while time.monotonic() < deadline:
            if _ping(self._socket) == b"+PONG\r\n":
                return
            if self._process.poll() is not None:
                break
            time.sleep(0.01)
        raise StartError(
            f"the queue server did not start; its last words are in {self._dir / 'server.log'}"
        )

    def _announced(self) -> bool:
        """Whether the endpoint could be written; on a full disk it waits for room."""
        try:
            self._write_endpoint()
        except OSError:
            return False
        return True

    def _write_endpoint(self) -> None:
        endpoint = {"socket": str(self._socket), "pid": self.pid, "owner": os.getpid()}
        temporary = self._dir / "endpoint.json.new"
        temporary.write_text(json.dumps(endpoint))
        temporary.replace(self._dir / "endpoint.json")


def _socket_path(directory: Path) -> Path:
    """``r.sock`` in the directory, or in a private one with a short name: the kernel's limit."""
    path = directory / "r.sock"
    if len(os.fsencode(path)) <= _LONGEST_SOCKET_PATH:
        return path
    digest = hashlib.sha256(os.fsencode(directory.resolve())).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"headway-{os.getuid()}-{digest}" / "r.sock"


def _ping(path: Path) -> bytes:
    """What the server answers to PING; empty when nobody does."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(1.0)
            connection.connect(str(path))
            connection.sendall(b"PING\r\n")
            return connection.recv(64)
    except OSError:
        return b""
