"""Children are kept running and stopped in order."""

import asyncio
import os
import signal
import sys

import psutil
import pytest

from gateway.bootstrap.children import Children, ChildSpec
from gateway.core.clock import SystemClock
from gateway.core.errors import ConfigError

_SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]
_DEAF = [
    sys.executable,
    "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)",
]


async def test_a_child_that_ends_is_started_again() -> None:
    """After a short pause, with a new process id; stopping leaves none."""
    children = Children([ChildSpec("one", _SLEEP), ChildSpec("two", _SLEEP)], SystemClock())
    children.start()
    watching = asyncio.create_task(children.watch())
    first = children.pids()
    os.kill(first["one"], signal.SIGKILL)
    async with asyncio.timeout(5):
        while children.pids().get("one") in {None, first["one"]}:  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.02)
    assert children.pids()["two"] == first["two"]
    watching.cancel()
    running = children.pids().values()
    await children.stop_one("one")
    assert set(children.pids()) == {"two"}
    await children.stop()
    assert not any(psutil.pid_exists(pid) for pid in running)


async def test_a_child_that_does_not_listen_is_killed() -> None:
    """SIGKILL after the time it was given."""
    children = Children([ChildSpec("deaf", _DEAF, stop_seconds=0.2)], SystemClock())
    children.start()
    pid = children.pids()["deaf"]
    await asyncio.sleep(0.3)
    await children.stop()
    assert not psutil.pid_exists(pid)


async def test_a_vital_child_that_refuses_its_configuration_ends_all() -> None:
    """Starting it again would not help; one that merely crashes is started again."""
    refuses = [sys.executable, "-c", "raise SystemExit(78)"]
    children = Children([ChildSpec("gateway", refuses, vital=True)], SystemClock())
    children.start()
    with pytest.raises(ConfigError, match="gateway refuses to start"):
        await asyncio.wait_for(children.watch(), 5)
    children = Children([ChildSpec("other", refuses)], SystemClock())
    children.start()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(children.watch(), 0.5)
    await children.stop()
