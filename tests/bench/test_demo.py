"""The demo, small on every run and whole in the long ones."""

import contextlib
import io
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest
from rich.console import Console

from gateway.bench import demo
from gateway.bench.arms import Size
from gateway.bench.checks import failed
from gateway.bench.demo import run_demo
from gateway.bench.server import Server
from tests.support.answers import Pace
from tests.support.serve import KEY, headway, one_target, wait_for
from tests.support.upstream import ScriptedUpstream

SMALL = Size(
    min_rows=16,
    max_rows=16,
    tokens=8,
    single=2,
    alone=2,
    beside=3,
    interactive_tokens=4,
    share=0.5,
)


async def test_the_flow_on_an_engine_of_eight_slots(
    tmp_path: Path, upstream: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With an upstream that behaves like an engine every check but the occupancy of 48 holds."""
    upstream.pace = Pace(first=0.02, token=0.02)
    upstream.limit(8)
    size = Size(48, 48, 8, 3, 5, 20, 4, 1.2)
    with headway(tmp_path, one_target(upstream.url, window=6)) as running:

        @contextlib.asynccontextmanager
        async def serving() -> AsyncIterator[Server]:
            yield Server(running.base_url, upstream.url, KEY, running.data_dir)

        monkeypatch.setattr(demo, "serving", serving)
        console = Console(file=io.StringIO(), width=100)
        missed = failed(await run_demo(console, size))
    assert ["occupancy" in check.promise for check in missed] == [True], missed
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "batch size 1" in text


async def test_a_small_demo_adds_up() -> None:
    """On real parts: every answer there once, and the bill equal to the sum of all answers."""
    console = Console(file=io.StringIO(), width=100)
    checks = {check.promise: check for check in await run_demo(console, SMALL)}
    exact = [check for promise, check in checks.items() if "metered" in promise]
    assert len(exact) == 2
    assert all(check.ok for check in exact), exact
    assert checks["every custom_id answered exactly once, at full length"].found == "32 of 32"
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "headway serve" in text
    assert "batch size 1" in text


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_stopped_at_once_it_leaves_no_process(number: int, tmp_path: Path) -> None:
    """Ctrl-C, a polite and an impolite kill while everything starts: nothing survives."""
    process = start_demo(tmp_path)
    family = wait_for(lambda: running_below(process.pid, 3), 30, "the children")
    process.send_signal(number)
    code = process.wait(30)
    _, alive = psutil.wait_procs(family, timeout=15)
    assert not alive
    assert number != signal.SIGINT or code == 130


@pytest.mark.long
def test_the_whole_demo_holds(tmp_path: Path) -> None:
    """Every figure on this machine, within four minutes, and nothing left on disk."""
    process = start_demo(tmp_path)
    assert process.wait(240) == 0, (tmp_path / "output").read_text()
    assert [path.name for path in tmp_path.iterdir()] == ["output"]


def start_demo(folder: Path) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "TMPDIR": str(folder)}  # noqa: TID251 - a child's environment
    with (folder / "output").open("wb") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "gateway", "bench", "demo"],
            env=environment,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )


def running_below(pid: int, count: int) -> list[psutil.Process] | None:
    family = psutil.Process(pid).children(recursive=True)
    return family if len(family) >= count else None
