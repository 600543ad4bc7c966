"""``python -m tests.support.failing FOLDER serve …`` is ``headway serve …`` with failpoints.

What is killed by SIGKILL is started again at once, as a fork of this process, in which everything
is imported already. The dispatcher of a gateway is started in the same way.
"""

import ctypes
import importlib
import os
import signal
import sys
from pathlib import Path

from gateway.bootstrap import specs
from gateway.cli.main import main as headway
from gateway.core.settings import Settings
from tests.support.failpoints import Failpoints

_PR_SET_PDEATHSIG = 1
_PRODUCT = ("-m", "gateway")


def main() -> None:
    """Run the command until it ends in another way than by SIGKILL."""
    folder, role = sys.argv[1:3]
    importlib.import_module(f"gateway.bootstrap.{role}")
    data_dir = Path(sys.argv[sys.argv.index("--data-dir") + 1])
    Failpoints(Path(folder)).wrap(role, data_dir)
    _wrap_children(folder)
    sys.argv[:2] = ["headway"]
    children: list[int] = []
    signal.signal(signal.SIGTERM, lambda *_: os.kill(children[-1], signal.SIGTERM))
    while True:
        parent = os.getpid()
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        child = os.fork()
        if not child:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        children.append(child)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        if not child:
            _end_with(parent)
            headway()
            return
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if code != -signal.SIGKILL:
            sys.exit(max(code, 0))


def _end_with(parent: int) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(1)


def _wrap_children(folder: str) -> None:
    command = specs._command

    def wrapped(name: str, settings: Settings) -> list[str]:
        python, *rest = command(name, settings)
        assert tuple(rest[:2]) == _PRODUCT
        wrapper = ("-m", __spec__.name, folder) if name == "dispatch" else _PRODUCT
        return [python, *wrapper, *rest[2:]]

    specs._command = wrapped


if __name__ == "__main__":
    main()
