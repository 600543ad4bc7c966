"""Running the ingest of one file: a small file in a thread, any other in a child process.

A thread begins at once and costs a small file's worth of memory; a child takes the memory of a
large file with it, and whatever a file does to it, it does not do to this process.
"""

import asyncio
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from gateway.batches.ingest import FAULT_EXIT, IngestRequest, Summary, ingest
from gateway.core.errors import HeadwayError
from gateway.core.launch import launch_argv

BROKEN = "ingest_broken"
"""The code of the error when the file itself seems to be what ended its ingest."""

_SMALL_BYTES = 512 * 2**10
_CHILD = ("-m", "gateway.batches.ingest")
_STOPPED = frozenset({-signal.SIGTERM, -signal.SIGINT, -signal.SIGHUP})


async def run_ingest(request: IngestRequest) -> Summary:
    """What is found in the file. Raises HeadwayError when that is not known."""
    try:
        if _is_small(request):
            return await asyncio.to_thread(ingest, request)
    except OSError as error:
        raise HeadwayError("The input cannot be read, or its index not written.") from error
    except Exception as error:
        raise HeadwayError("The ingest of a file broke down.", code=BROKEN) from error
    argv = launch_argv([sys.executable, *_CHILD])
    return Summary.from_json(await _output(argv, request.to_json()))


def _is_small(request: IngestRequest) -> bool:
    return Path(request.source).stat().st_size <= _SMALL_BYTES


async def _output(argv: Sequence[str], given: bytes) -> bytes:
    """Standard output of a child that must succeed; it does not outlive this call."""
    child = await asyncio.create_subprocess_exec(
        *argv, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    try:
        printed, _ = await child.communicate(given)
    except asyncio.CancelledError:
        with suppress(ProcessLookupError):
            child.kill()
        await child.wait()
        raise
    ended = child.returncode or 0
    if ended:
        broken = ended == FAULT_EXIT or (ended < 0 and ended not in _STOPPED)
        raise HeadwayError(
            f"The ingest process ended with {ended}.", code=BROKEN if broken else None
        )
    return printed
