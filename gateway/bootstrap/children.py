"""Child processes: started, started again when they end, stopped in order."""

import asyncio
import logging
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gateway.core.clock import Clock
from gateway.core.errors import ConfigError
from gateway.core.launch import launch_argv
from gateway.core.settings import child_environment

_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 5.0
_SETTLED_AFTER = 10.0
_LOOK_EVERY = 0.1

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ChildSpec:
    """One child: ``argv`` to run, extra environment, seconds from SIGTERM to SIGKILL.

    ``fds`` are open files it gets; ``orphaned`` is the signal it gets when this process dies;
    ``vital`` says that its refusal of the configuration is this process's own.
    """

    name: str
    argv: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    stop_seconds: float = 5.0
    fds: tuple[int, ...] = ()
    orphaned: signal.Signals = signal.SIGTERM
    vital: bool = False


class Child:
    """One supervised process. It gets a signal when this process dies, however that happens."""

    def __init__(self, spec: ChildSpec, clock: Clock) -> None:
        self.spec = spec
        self._clock = clock
        self._process: subprocess.Popen[bytes] | None = None
        self._ending: subprocess.Popen[bytes] | None = None
        self._started_at = 0.0
        self._start_at = 0.0
        self._pause = _FIRST_PAUSE

    @property
    def pid(self) -> int | None:
        """Process id while it runs."""
        return self._process.pid if self._process is not None else None

    def start(self) -> None:
        """Start the process, from the main thread: a thread's end counts as the parent's."""
        # Own process group: Ctrl-C reaches the parent alone, which stops the children in order.
        self._process = subprocess.Popen(  # noqa: S603 - our own command
            launch_argv(self.spec.argv, self.spec.orphaned),
            env=child_environment(self.spec.env),
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=self.spec.fds,
        )
        self._started_at = self._clock.monotonic()

    def look(self) -> None:
        """Start it again if it ended, not at once but after a pause that doubles up to 5 s.

        Raises ConfigError when a vital one will not have its configuration.
        """
        now = self._clock.monotonic()
        if self._process is None:
            if now >= self._start_at:
                self.start()
            return
        code = self._process.poll()
        if code is None:
            return
        if self.spec.vital and code == ConfigError.exit_code:
            raise ConfigError(f"{self.spec.name} refuses to start; it has said why")
        if now - self._started_at >= _SETTLED_AFTER:
            self._pause = _FIRST_PAUSE
        log.warning("%s ended with %s; starting again in %.1f s", self.spec.name, code, self._pause)
        self._process = None
        self._start_at = now + self._pause
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)

    async def stop(self) -> None:
        """SIGTERM, then SIGKILL after ``stop_seconds``. Returns when the process is gone."""
        process, self._process = self._process, None
        if process is None:
            return
        self._ending = process
        process.send_signal(signal.SIGTERM)
        deadline = self._clock.monotonic() + self.spec.stop_seconds
        while process.poll() is None:
            if self._clock.monotonic() >= deadline:
                log.warning("%s did not stop in time and is killed", self.spec.name)
                process.kill()
                process.wait()
                return
            await asyncio.sleep(0.02)

    def hurry(self) -> None:
        """SIGTERM once more for a process that is asked to stop and has not yet."""
        if self._ending is not None and self._ending.poll() is None:
            self._ending.send_signal(signal.SIGTERM)


class Children:
    """All children of this process, in the order of their start."""

    def __init__(self, specs: Sequence[ChildSpec], clock: Clock) -> None:
        self._children = [Child(spec, clock) for spec in specs]

    def start(self) -> None:
        """Start all of them, none waiting for another."""
        for child in self._children:
            child.start()

    def pids(self) -> dict[str, int]:
        """Process id of each running child by name."""
        return {child.spec.name: child.pid for child in self._children if child.pid is not None}

    async def watch(self) -> None:
        """Keep them running until cancelled."""
        while True:
            for child in self._children:
                child.look()
            await asyncio.sleep(_LOOK_EVERY)

    async def stop_one(self, name: str) -> None:
        """Stop the children of that name, all at once, while the others go on."""
        named = [child for child in self._children if child.spec.name == name]
        await asyncio.gather(*(child.stop() for child in named))

    def hurry(self, name: str) -> None:
        """Ask those of that name that are stopping once more."""
        for child in self._children:
            if child.spec.name == name:
                child.hurry()

    async def stop(self) -> None:
        """Stop them in the order they were given, each one gone before the next is asked."""
        for child in self._children:
            await child.stop()
