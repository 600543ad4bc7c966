"""Children that end when their parent does.

Used in two ways: ``launch_argv`` wraps a command; run as a file, this module asks the kernel to
signal the process when its parent dies and then becomes the command. The process id stays the
same. On systems without parent-death signals the command runs as it is.
"""

import os
import signal
import sys
from collections.abc import Sequence

_PR_SET_PDEATHSIG = 1


def launch_argv(argv: Sequence[str], sig: int = signal.SIGTERM) -> list[str]:
    """``argv`` as a command that receives ``sig`` when the calling process dies.

    To be started by the calling process itself, from a thread that lives as long as it does.
    """
    if sys.platform != "linux":
        return list(argv)
    return [sys.executable, "-I", "-S", __file__, str(int(sig)), str(os.getpid()), *argv]


def _main(sig: int, parent: int, argv: Sequence[str]) -> None:
    import ctypes  # noqa: PLC0415 - only here: every process imports this module

    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, sig)
    if os.getppid() == parent:
        os.execvp(argv[0], list(argv))  # noqa: S606 - becoming the command is the point


if __name__ == "__main__":
    _main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
