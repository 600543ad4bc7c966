"""Killed at random in the middle of a batch: nothing lost, nothing twice, the meter exact."""

import os
import random
import signal
from pathlib import Path

import psutil
import pytest

from tests.support.answers import Pace
from tests.support.batch import BatchClient, chat_line, ids, usage_of
from tests.support.meter import delivered
from tests.support.serve import RunningHeadway, headway, one_target, wait_for
from tests.support.upstream import ScriptedUpstream

_ROWS = 60
_SEEDS = [0, *(pytest.param(n, marks=pytest.mark.long) for n in (1, 2, 3, 4))]
_ENV = {"HEADWAY_LEASE_SECONDS": "1"}
_VICTIMS = ("dispatch", "queue", "gateway")


@pytest.mark.parametrize("seed", _SEEDS)
@pytest.mark.parametrize("victim", _VICTIMS)
def test_a_killed_process_loses_and_repeats_nothing(
    tmp_path: Path, upstream: ScriptedUpstream, victim: str, seed: int
) -> None:
    """The batch completes, each id exactly once, and the meter is what was delivered."""
    chance = random.Random(f"{victim}-{seed}")
    upstream.pace = Pace(first=0.02, token=0.01)
    with headway(tmp_path, one_target(upstream.url, window=8), _ENV) as running:
        client = BatchClient(running)
        lines = [
            chat_line(str(n), f"row {n}", max_tokens=chance.randint(2, 8)) for n in range(_ROWS)
        ]
        batch_id = client.start(lines)["id"]
        at = chance.randint(_ROWS // 5, _ROWS * 4 // 5)
        wait_for(lambda: client.done(batch_id) >= at, 20, f"{at} rows")
        _kill(running, victim)
        batch = client.ended(batch_id, 40)
        output = client.output(batch)
        assert batch["status"] == "completed"
        assert batch["error_file_id"] is None
        assert ids(output) == sorted(line["custom_id"] for line in lines)
        _meter_is_exact(running, upstream, output)


def _kill(running: RunningHeadway, victim: str) -> None:
    if victim == "gateway":
        running.kill()
        running.start_again()
        return
    pid = running.child(victim)
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not psutil.pid_exists(pid), 10, "its end")


def _meter_is_exact(
    running: RunningHeadway, upstream: ScriptedUpstream, output: list[dict[str, object]]
) -> None:
    """Delivered tokens are those of the output, and none that UP did not log."""
    prompt, completion = usage_of(output)
    assert delivered(running) == (prompt, completion)
    sent_prompt, sent_completion = upstream.usage()
    assert prompt <= sent_prompt
    assert completion <= sent_completion
    answered = {}
    for call in upstream.calls():
        if call.completed and call.usage:
            answered[call.json["messages"][0]["content"]] = call.usage
    assert sum(usage["prompt_tokens"] for usage in answered.values()) == prompt
    assert sum(usage["completion_tokens"] for usage in answered.values()) == completion
