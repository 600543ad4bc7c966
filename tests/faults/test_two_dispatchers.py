"""Two dispatcher processes at one engine: its window is theirs together."""

import os
import signal
import subprocess
import time
from pathlib import Path

import httpx
import pytest

from tests.support.batch import BatchClient, chat_line
from tests.support.serve import COMMAND, FAST, clean_environment, headway, wait_for
from tests.support.simulated import engine_process

_WINDOW = 6


def _peak(url: str, seconds: float) -> tuple[int, float]:
    """The most sequences that the engine had within so many seconds, and the mean."""
    seen = []
    end = time.monotonic() + seconds
    with httpx.Client() as client:
        while time.monotonic() < end:
            page = client.get(f"{url}/metrics").text.splitlines()
            named = [line for line in page if line.startswith("vllm:num_requests_")]
            seen.append(sum(int(float(line.split()[-1])) for line in named))
            time.sleep(0.01)
    return max(seen), sum(seen) / len(seen)


@pytest.mark.timeout(120)
async def test_a_window_is_shared_and_handed_over(tmp_path: Path) -> None:
    """Never more rows than the window, and soon all of them are the other's when one is killed.

    In between the rows that the dead one had run alone, as each might be what killed it.
    """
    async with engine_process("--profile", "h200-8b", "--model", "m") as (url, _):
        lanes = {"batch": {"max_in_flight": _WINDOW}}
        target = {"base_url": f"{url}/v1", "kind": "vllm", "models": ["m"], "lanes": lanes}
        with headway(tmp_path, {"targets": {"up": target}}) as running:
            argv = [*COMMAND, "dispatch", "--data-dir", str(running.data_dir)]
            argv += ["--policy", str(tmp_path / "policy.yaml")]
            other = subprocess.Popen(  # noqa: ASYNC220 - ours to kill
                argv, env={**clean_environment(), **FAST}, stdin=subprocess.DEVNULL
            )
            try:
                client = BatchClient(running)
                lines = [chat_line(f"c{n}", "x" * 400, max_tokens=60) for n in range(300)]
                batch_id = client.start(lines)["id"]
                wait_for(lambda: client.done(batch_id) >= 20, 30, "both at work")
                together, busy = _peak(url, 3)
                os.kill(other.pid, signal.SIGKILL)
                after, _ = _peak(url, 4)
                ended = client.ended(batch_id, 60)
            finally:
                other.kill()
                other.wait()
    assert together <= _WINDOW
    assert busy > 0.7 * _WINDOW
    assert after == _WINDOW
    assert ended["request_counts"] == {"total": 300, "completed": 300, "failed": 0}
