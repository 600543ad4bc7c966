"""kill -9 of the bundled worker in the middle of a batch."""

import json
import os
import random
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.support.batch import BatchClient, chat_line, ids, usage_of
from tests.support.meter import delivered
from tests.support.serve import headway, wait_for

_ROWS = 48
# Refusals while the worker starts (it imports torch) are no outage: the cap is the patience.
_ENV = {"HEADWAY_MODEL_PATH": "tiny", "HEADWAY_RETRY_CAP_SECONDS": "30"}
_POLICY = {
    "targets": {
        "local": {
            "kind": "local",
            "models": ["tiny"],
            "lanes": {"batch": {"max_in_flight": 8}},
            "worker": {"rows": 9, "reserved_rows": 1, "context": 256, "threads": 1},
        }
    }
}


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(n, marks=pytest.mark.long) for n in (1, 2, 3, 4))]
)
def test_a_killed_worker_loses_and_repeats_nothing(tmp_path: Path, seed: int) -> None:
    """Every row in flight comes back as a suspect, and all of them are answered once."""
    chance = random.Random(f"worker-{seed}")
    log = tmp_path / "worker.jsonl"
    with headway(tmp_path, _POLICY, {**_ENV, "HEADWAY_WORKER_LOG": str(log)}) as running:
        client = BatchClient(running)
        lines = [
            chat_line(str(n), f"row {n}", model="tiny", max_tokens=chance.randint(8, 16))
            for n in range(_ROWS)
        ]
        batch_id = client.start(lines)["id"]
        at = chance.randint(_ROWS // 5, _ROWS * 4 // 5)
        wait_for(lambda: client.done(batch_id) >= at, 30, f"{at} rows")
        os.kill(running.child("worker"), signal.SIGKILL)
        batch = client.ended(batch_id, 60)
        output = client.output(batch)
        assert batch["status"] == "completed"
        assert ids(output) == sorted(line["custom_id"] for line in lines)
        assert delivered(running) == usage_of(output)
        assert _noted(log) >= {_tokens(line) for line in output}


def _noted(log: Path) -> set[tuple[str, int, int]]:
    """Request, prompt and completion tokens of every answer that the workers gave."""
    entries = [json.loads(line) for line in log.read_text().splitlines()]
    return {(e["id"], e["prompt_tokens"], e["completion_tokens"]) for e in entries}


def _tokens(line: dict[str, Any]) -> tuple[str, int, int]:
    response = line["response"]
    usage = response["body"]["usage"]
    return response["request_id"], usage["prompt_tokens"], usage["completion_tokens"]


@pytest.mark.long
def test_que_18_a_poison_row_and_a_real_worker(tmp_path: Path) -> None:
    """A prompt that makes the worker exit each time ends as max_deliveries; 20 others finish."""
    env = {**_ENV, "HEADWAY_FAULT_INJECTION": "crash_prompt=poison"}
    with headway(tmp_path, _POLICY, env) as running:
        client = BatchClient(running)
        lines = [
            chat_line(str(n), "poison" if n == 5 else "good", model="tiny", max_tokens=8)
            for n in range(21)
        ]
        batch = client.ended(client.start(lines)["id"], 110)
        assert batch["request_counts"] == {"completed": 20, "failed": 1, "total": 21}
        [line] = client.errors(batch)
        assert line["custom_id"] == "5"
        assert line["error"]["code"] == "max_deliveries"
