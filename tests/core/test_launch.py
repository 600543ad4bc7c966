"""The exec launcher: same process id, ends with its parent, starts nothing for a dead one."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from gateway.core.launch import launch_argv

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="parent-death signals are Linux's")

_PARENT = """
import subprocess, sys, time
from gateway.core.launch import launch_argv
child = subprocess.Popen(launch_argv(["sleep", "60"]))
print(child.pid, flush=True)
time.sleep(60)
"""


def test_the_command_replaces_the_launcher() -> None:
    """The child is the command itself under the id that Popen knows, its output untouched."""
    code = "import os; print(os.getpid())"
    with subprocess.Popen(
        launch_argv([sys.executable, "-c", code]), stdout=subprocess.PIPE, text=True
    ) as child:
        output, _ = child.communicate(timeout=10)
    assert int(output) == child.pid


def test_the_exit_code_is_that_of_the_command() -> None:
    """Nothing stands between the child and who waits for it."""
    code = "raise SystemExit(7)"
    argv = launch_argv([sys.executable, "-c", code])
    assert subprocess.run(argv, check=False, timeout=10).returncode == 7


def test_the_child_ends_when_its_parent_is_killed() -> None:
    """SIGKILL of the parent gives it no chance to tidy up, and still leaves nothing behind."""
    with subprocess.Popen(
        [sys.executable, "-c", _PARENT],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    ) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        parent.kill()
        parent.wait(10)
    _, alive = psutil.wait_procs([child], timeout=5)
    assert alive == []


def test_a_parent_that_is_gone_already_gets_no_child() -> None:
    """Between fork and prctl the parent may die: then the command is not started at all."""
    argv = launch_argv([sys.executable, "-c", "print('started')"], signal.SIGKILL)
    place = argv.index(str(os.getpid()))
    argv[place] = "1" if os.getpid() != 1 else "2"
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=10)
    assert done.stdout == ""
